#pragma once

#include <map>
#include <optional>

#include "net/time.hpp"
#include "observability/histogram.hpp"
#include "ps/ids.hpp"

namespace stagger {

/// How long a worker's pushes take, as the worker sees it.
///
/// For:     the report: push_us and ready_to_done_us.
/// Owner:   Client. Thread: one at a time.
/// Failure: none: an acknowledgement that nobody waits for, whatever it names, changes nothing.
///
/// Of a group one push is under way at a time; a newer one takes the place of one that was never
/// acknowledged.
class PushTimes {
 public:
  /// The group could be pushed from now on. Rounds that this is not said of are not measured.
  void ready(RoundId round, TimePoint now);

  /// The push's first byte is handed to the connection.
  void began(RoundId round, TimePoint now);

  /// When it began; nothing for a round that is not under way.
  std::optional<TimePoint> began_at(RoundId round) const;

  /// The PS has read its last byte.
  void received(RoundId round, TimePoint now);

  /// From began() to received().
  const QuantileSketch& push() const { return push_; }

  /// From ready() to received().
  const QuantileSketch& ready_to_done() const { return ready_to_done_; }

 private:
  struct Push {
    Iteration iteration;
    TimePoint ready_at;
    std::optional<TimePoint> began_at;
  };

  std::map<GroupId, Push> pushes_;  ///< under way
  QuantileSketch push_;
  QuantileSketch ready_to_done_;
};

}  // namespace stagger
