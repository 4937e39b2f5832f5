#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/time.hpp"
#include "ps/ids.hpp"

namespace stagger {

enum class Activity : std::uint8_t {
  forward,
  backward,  ///< with the local step
  wait,      ///< compute waits for a reply: exposed communication
  turn,      ///< a group that is ready waits for its slot or turn
  push       ///< first byte to the PS's acknowledgement of the last
};

struct ActivitySpan {
  Activity activity = Activity::forward;
  GroupId group;
  TimePoint begin;
  TimePoint end;

  bool operator==(const ActivitySpan&) const = default;
};

/// What a worker did when, of one iteration.
///
/// For:     pictures of an iteration (engine/iteration_picture.hpp).
/// Owner:   whoever wants the picture; outlives the worker that fills it. Thread: the loop.
class Timeline {
 public:
  /// A bound on memory, above what the groups of any plan need.
  static constexpr std::size_t spans_max = 65536;

  explicit Timeline(Iteration iteration) : iteration_(iteration) {}

  Iteration iteration() const { return iteration_; }

  /// Keeps what belongs to the iteration; a push belongs to that of its round.
  void add(Iteration iteration, const ActivitySpan& span) {
    if (iteration == iteration_ && spans_.size() < spans_max) spans_.push_back(span);
  }

  /// To another clock, such as one that all workers share.
  template <class Convert>
  void convert(const Convert& to) {
    for (ActivitySpan& span : spans_) {
      span.begin = to(span.begin);
      span.end = to(span.end);
    }
  }

  /// In the order in which they ended.
  std::span<const ActivitySpan> spans() const { return spans_; }

 private:
  Iteration iteration_;
  std::vector<ActivitySpan> spans_;
};

}  // namespace stagger
