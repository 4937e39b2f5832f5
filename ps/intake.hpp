#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ps/ids.hpp"
#include "ps/protocol.hpp"

namespace stagger {

/// Where chunks wait that came before their turn, within a bound. Pure.
///
/// Sums run in planned order, arrivals do not. What comes early is kept while there is room; when
/// there is none, a session holds its chunk and stops reading from its worker. Each session has a
/// buffer of its own, so the chunk that is next in order can always be received: it is never the
/// one that is refused room. Holding can close a ring only when a needed chunk stands behind a held
/// one in the same stream (workers that send groups in different orders); then one chunk of the
/// ring is shed: its bytes are dropped, and its worker is asked for it again when its turn comes.
/// So order and bounded memory never deadlock.
class Intake {
 public:
  explicit Intake(std::size_t chunks_max) : chunks_max_(chunks_max) {}

  bool try_keep() {
    if (!has_room()) return false;
    ++kept_;
    return true;
  }

  bool has_room() const { return kept_ < chunks_max_; }

  void release() { --kept_; }

  std::size_t kept() const { return kept_; }

  /// The worker's session holds this chunk and has stopped reading.
  void hold(WorkerId worker, ChunkId chunk) { holding_[worker] = chunk; }

  void unhold(WorkerId worker) { holding_.erase(worker); }

  const std::map<WorkerId, ChunkId>& holding() const { return holding_; }

  /// A worker whose held chunk must be shed, if holders wait for each other in a ring. `awaited`
  /// says whose contribution a chunk waits for.
  std::optional<WorkerId> victim(
      const std::function<std::optional<WorkerId>(ChunkId)>& awaited) const;

 private:
  std::size_t chunks_max_;
  std::size_t kept_ = 0;
  std::map<WorkerId, ChunkId> holding_;
};

}  // namespace stagger
