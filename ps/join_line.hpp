#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "ps/ids.hpp"

namespace stagger {

/// Whose piece of the joining center leaves next: few workers at a time, one piece each, the first
/// come first. Pure.
///
/// Why:     a thousand workers that join at once would share the PS's way out, each with a piece
/// under way, and none of them would hear anything else until nearly all have theirs: a heartbeat
/// behind its own connection's piece is late by the time of a thousand pieces.
/// For:     Server. Owner: the server. Thread: the loop.
class JoinLine {
 public:
  static constexpr std::size_t workers_max = 4;  ///< at a time; one alone may have a slow link

  /// So many pieces await being sent. REQUIRES that the worker is not in line.
  void ask(WorkerId worker, std::size_t pieces);

  /// Whose next piece is to be sent now. Call until there is none.
  std::optional<WorkerId> next();

  /// The piece has been handed to the worker's connection. Ignored for one that is not in line.
  void sent(WorkerId worker);

  /// The worker is gone.
  void forget(WorkerId worker);

 private:
  struct Joining {
    WorkerId worker;
    std::size_t pieces = 0;  ///< not yet begun
    bool sending = false;
  };

  std::deque<Joining> line_;
};

}  // namespace stagger
