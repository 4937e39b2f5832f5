#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/error.hpp"
#include "net/time.hpp"
#include "ps/ids.hpp"

namespace stagger {

/// Who belongs to the job, and who is absent since when. Pure: takes events and `now`, gives
/// verdicts and reasons.
///
///     expected -> joined -> active -> (silent) -> gone | left
///
/// A worker that loses its connection before the start is expected again. After the start it is
/// silent; when that has lasted `worker_max` it is gone: rounds close without it. A worker that
/// comes back takes its rank again, from a join iteration on.
class Membership {
 public:
  enum class State : std::uint8_t { expected, joined, active, silent, gone, left };

  struct Options {
    std::uint32_t world = 1;  ///< K ranks
    Duration worker_max{5s};  ///< silence after which a worker is gone
  };

  struct Member {
    State state = State::expected;
    Incarnation incarnation;
    std::string address;
    TimePoint heard_at;
    Iteration joins_at{1};  ///< first iteration that counts with this incarnation
    std::string reason;     ///< of silent, gone or left
  };

  explicit Membership(Options options);

  /// A rank for a newcomer. `rank` -1: the lowest free one. Refused: out of range, all taken, or
  /// held by a live worker (both addresses are named). A silent or gone rank is taken over by a new
  /// incarnation.
  Result<WorkerId> join(std::int32_t rank, const std::string& address, TimePoint now);

  void activate(WorkerId worker, Iteration joins_at);
  void heard(WorkerId worker, Incarnation incarnation, TimePoint now);
  void disconnected(
      WorkerId worker, Incarnation incarnation, const std::string& reason, TimePoint now);
  void leave(WorkerId worker, const std::string& reason);

  /// Declares silent members gone whose limit has passed; returns those newly gone.
  std::vector<WorkerId> evaluate(TimePoint now);

  /// When evaluate() may next have something to say; time_point_max when never.
  TimePoint next_evaluation() const;

  /// Rounds of this iteration do not wait for the worker.
  bool absent(WorkerId worker, Iteration iteration) const;

  const Member& member(WorkerId worker) const { return members_.at(worker.value()); }

  std::uint32_t world() const { return static_cast<std::uint32_t>(members_.size()); }

  std::vector<WorkerId> in_state(State state) const;
  bool all_joined() const;  ///< nobody is expected any longer
  bool all_ended() const;   ///< everybody is gone or has left

 private:
  Member& at(WorkerId worker) { return members_.at(worker.value()); }

  Options options_;
  std::vector<Member> members_;
  std::uint64_t incarnations_ = 0;
};

std::string_view to_string(Membership::State state);

}  // namespace stagger
