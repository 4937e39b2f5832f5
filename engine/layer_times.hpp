#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/backend.hpp"
#include "net/host.hpp"
#include "ps/protocol.hpp"

namespace stagger {

/// Measures each layer's forward and backward on scratch parameters: it trains nothing.
///
/// For:     Worker before iteration 1, and `stagger plan`.
/// Owner:   either; host and backend outlive it. Thread: the loop; the work runs on the compute
/// thread.
class LayerTimes {
 public:
  LayerTimes(Host host, Backend& backend);

  /// The median of `repeats` runs over the rank's first batch. REQUIRES repeats > 0.
  Task<void> measure(std::uint64_t repeats, WorkerId rank);

  const Profile& profile() const { return profile_; }

 private:
  Task<void> run_once(WorkerId rank);
  Task<Duration> timed(std::function<void()> work, Duration nominal);

  Host host_;
  Backend& backend_;
  std::vector<std::vector<Duration>> forward_;
  std::vector<std::vector<Duration>> backward_;
  Profile profile_;
};

}  // namespace stagger
