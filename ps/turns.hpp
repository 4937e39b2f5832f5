#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "net/time.hpp"
#include "ps/ids.hpp"

namespace stagger {

/// What a turn is for: a worker's push of a round, or one chunk of a reply to it.
struct TurnId {
  WorkerId worker;
  RoundId round;
  std::uint32_t chunk = 0;  ///< of a reply; a push is one turn as a whole

  auto operator<=>(const TurnId&) const = default;
};

/// Where a turn stands in line, compared from the first field to the last. Whoever asks for an
/// older iteration comes first, so that nobody starves.
struct TurnRank {
  TimePoint slot;              ///< begin of the worker's slot; the same for all without slots
  Iteration iteration;         ///< …
  Duration planned{0};         ///< … of the group's window, from the start of backward
  std::uint32_t chunk = 0;     ///< of a reply
  std::uint32_t position = 0;  ///< of the worker in the round

  auto operator<=>(const TurnRank&) const = default;
};

/// Hands out the right to send on one direction of the PS's link, `concurrent` at a time. Pure.
///
/// For:     Server: one for pushes, one for replies.
/// Owner:   the server. Thread: the loop.
/// Early:   with `early`, a turn is handed out before the last one has ended, by as much time as
/// the shortest way from a go to its first byte has lately taken, so that the link does not idle
/// in between. How long a turn lasts is predicted from the median rate of the last ones. Each
/// holder has at most one such successor.
/// Limits:  a holder of which nothing is heard for `stall_max` loses its turn; what it still sends
/// is received as ever. A turn whose worker is gone is free at once. A worker waits for one turn of
/// each (group, chunk) at most, which bounds the queue.
class Turns {
 public:
  struct Options {
    std::uint32_t concurrent = 1;
    Duration stall_max{500ms};
    bool early = true;
  };

  explicit Turns(Options options);

  /// A repeated request stands where it stood; a request for another round of the group replaces
  /// the former one.
  void ask(const TurnId& id, const TurnRank& rank, std::uint64_t bytes);

  /// The next turn to hand out now, if there is one. Call until there is none.
  std::optional<TurnId> next(TimePoint now);

  /// Its first byte waits to be read; it is read; some bytes have come; its last byte has come. Ids
  /// without a turn are ignored: a resend needs none, and a turn may have been taken back.
  void arrived(const TurnId& id, TimePoint now);
  void began(const TurnId& id, TimePoint now);
  void moved(const TurnId& id, TimePoint now);
  void ended(const TurnId& id, TimePoint now);

  /// Whether an arrived one may be read: not while `concurrent` others are. An early one that is
  /// there too soon waits in the kernel's buffer.
  bool may_begin(const TurnId& id) const;

  /// Nothing more is read from the worker before others have sent: its turns are free, and those it
  /// asked for wait, until resume(). What it still sends by a turn that it had needs none.
  void pause(WorkerId worker);
  void resume(WorkerId worker);

  /// The worker is gone: so are its requests and turns.
  void forget(WorkerId worker);

  /// When next() may have something that it does not have now, without any other call;
  /// time_point_max when never.
  TimePoint next_look(TimePoint now) const;

  /// Turns taken back since the last call.
  std::vector<TurnId> take_stalled() { return std::exchange(stalled_, {}); }

  std::size_t waiting() const { return requests_.size(); }

  std::size_t held() const { return holders_.size(); }

  /// At which a holder's bytes come, the median of late; 0 when not known yet.
  double bytes_per_second() const;

  /// Shortest time of late from a go to its first byte.
  Duration handover() const;

 private:
  struct Holder {
    std::uint64_t bytes = 0;
    TimePoint granted_at;
    bool arrived = false;
    std::optional<TimePoint> began_at;
    TimePoint moved_at;
    bool succeeded = false;  ///< somebody was let go early because this one is about to end
  };

  struct Waiting {
    TurnRank rank;
    TurnId id;

    auto operator<=>(const Waiting&) const = default;
  };

  struct Request {
    TurnRank rank;
    std::uint64_t bytes = 0;
  };

  template <class Use>
  void for_each_request(WorkerId worker, Use use);
  void take_back_stalled(TimePoint now);
  TimePoint successor_at(const Holder& holder) const;
  bool room(TimePoint now);

  TimePoint stalled_at(const Holder& holder) const { return holder.moved_at + options_.stall_max; }

  Options options_;
  std::set<Waiting> line_;
  std::map<TurnId, Request> requests_;  ///< the same by id, and those of paused workers
  std::set<WorkerId> paused_;
  std::map<TurnId, Holder> holders_;
  std::vector<TurnId> stalled_;
  std::deque<double> rates_;        ///< bytes per second of the last turns
  std::deque<Duration> handovers_;  ///< of the last turns
};

}  // namespace stagger
