#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

#include "net/time.hpp"
#include "ps/ids.hpp"

namespace stagger {

/// What bytes take on the PS's link while a run goes on, from pushes that had it for themselves.
/// Pure.
///
/// A chunk counts that came while no other push was under way, by the time since the chunk before
/// it, or since its push began to be read. A push that waited to be read does not count: it was
/// sent meanwhile. The start of a push is not seen from here.
///
/// Errors go both ways here (a chunk may have come while the one before was summed): of each
/// worker's last chunks the median counts. Of the workers the slowest: what is planned must hold
/// for it too.
class LinkWatch {
 public:
  struct Options {
    std::size_t window = 32;  ///< chunks of each worker
    std::size_t samples_min = 8;
    std::size_t bytes_min = 4096;  ///< of a chunk; a smaller one tells the overhead only
  };

  explicit LinkWatch(const Options& options) : options_(options) {}

  LinkWatch() : LinkWatch(Options()) {}

  /// `waited`: its first bytes had come before it could be read.
  void began(WorkerId worker, RoundId round, bool waited, TimePoint now);
  void received(WorkerId worker, RoundId round, std::size_t bytes, TimePoint now);
  void ended(WorkerId worker, RoundId round);

  /// None before some worker has had enough chunks.
  std::optional<double> seconds_per_byte() const;

 private:
  struct Push {
    WorkerId worker;
    RoundId round;

    auto operator<=>(const Push&) const = default;
  };

  Options options_;
  std::map<Push, TimePoint> open_;  ///< since when nothing of it came
  std::optional<Push> alone_;       ///< the one whose chunks count
  std::map<WorkerId, std::deque<double>> samples_;
};

}  // namespace stagger
