#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/event.hpp"
#include "net/host.hpp"
#include "net/scope.hpp"
#include "ps/clock_offset.hpp"
#include "ps/outbox.hpp"
#include "ps/protocol.hpp"
#include "ps/push_times.hpp"
#include "ps/rhythm.hpp"
#include "ps/timeline.hpp"
#include "ps/timeouts.hpp"

namespace stagger {

/// The worker cannot go on: the PS was not found, refused it, or was lost.
struct ClientFailure : std::runtime_error {
  enum class Kind : std::uint8_t { not_found, refused, lost };

  ClientFailure(Kind what_kind, const std::string& what)
      : std::runtime_error(what), kind(what_kind) {}

  Kind kind;
};

/// What the client hears outside of exchanges. Called on the loop; must not wait.
class ClientEvents {
 public:
  /// The last iteration after which this worker promises to stop until the commit.
  virtual Iteration hold_iteration() = 0;
  virtual void prepared(const Prepare& prepare, Iteration hold) = 0;
  virtual void committed(const Commit& commit) = 0;

  /// Progress for the next heartbeat; its sample lists are taken out.
  virtual Heartbeat take_progress() = 0;

 protected:
  ~ClientEvents() = default;
};

struct ClientOptions {
  Endpoint ps;
  Hello hello;
  std::size_t chunk_bytes = std::size_t{1} << 20;
  Timeouts timeouts;
  Timeline* timeline = nullptr;  ///< what the worker did when; null: nobody asks
};

/// The worker's side of the connection.
///
/// For:     Worker and Synchronizer.
/// Owner:   Worker; buffers given to open() outlive the client's tasks.
/// Thread:  the loop.
/// Cancel:  closes the connection.
/// Failure: ClientFailure, thrown by join(), begin() and, once running, through the scope that
/// serve() runs in.
///
/// Order: join() -> serve() -> [send profile] -> begin() -> open() each group, ready() -> exchanges
/// -> farewell().
class Client {
 public:
  Client(Host host, ClientOptions options);

  /// Dials until the PS answers (exponential back-off with seeded jitter) or timeouts.join has
  /// passed, says hello.
  Task<Welcome> join();

  /// Starts the tasks that write, read and send heartbeats, in `scope`. The first failure is thrown
  /// there.
  void serve(TaskScope& scope, ClientEvents& events);

  void send(const Message& message);

  /// Waits for the plan. `limit` is how long others may take to join.
  Task<Begin> begin(Duration limit);

  /// Where a group's center is received. Called once per group before begin's center, and for each
  /// exchange.
  struct Exchange {
    RoundId round;
    PlanVersion plan;
    std::span<const float> pushed;  ///< lives until the reply has come, for a resend
    std::span<float> center;        ///< the reply's target
  };

  /// Prepares to receive the joining center (round iteration 0) or the reply of a round. REQUIRES
  /// that no exchange of the group is open.
  void open(const Exchange& exchange);

  /// After begin(): every group's reception is open. The reader waits for it, since the center
  /// follows the plan at once.
  void ready();

  /// Asks the PS for a turn to push the group's open exchange, from its slot on, which begins in
  /// `wait`; returns when it has come. The PS gives it within a bounded time, or is lost.
  Task<void> await_turn(GroupId group, Duration wait);

  /// Sends all chunks of the group's open exchange; returns when the last has been handed to the
  /// writer.
  Task<void> push(GroupId group);

  /// Waits until the whole reply of the group's exchange has come; at once when none is open.
  Task<void> await_reply(GroupId group);

  bool reply_pending(GroupId group) const;

  /// What the owner says of its progress, with what the connection knows of itself.
  Heartbeat progress();

  /// What is known of the PS's clock.
  const ClockOffset& clock() const { return clock_; }

  /// From when all workers count an iteration's slots.
  struct CommonStart {
    TimePoint at;  ///< of backward, on this worker's clock
    Duration iteration_time{0};
  };

  /// None: the PS has not said it, or its clock is not known yet.
  std::optional<CommonStart> common_start(Iteration iteration) const;

  /// Says goodbye, and waits until the PS has heard it (it closes the connection).
  Task<void> farewell(const Farewell& farewell);

  std::uint64_t bytes_pushed() const { return bytes_pushed_; }

  std::uint64_t bytes_pulled() const { return bytes_pulled_; }

  /// Of the rounds that were said to be ready in it.
  PushTimes& push_times() { return push_times_; }

  /// For those who do something: into the timeline, from `begin` to now.
  void record(Activity activity, RoundId round, TimePoint begin) const;

 private:
  struct GroupState {
    explicit GroupState(const Executor& executor) : done(executor), turn(executor) { done.set(); }

    Exchange exchange;
    std::vector<bool> received;
    std::size_t missing = 0;
    Event done;
    Event turn;  ///< of the open exchange has come
  };

  Task<std::unique_ptr<Connection>> dial(TimePoint limit);
  Task<void> write_frames();
  Task<void> read_replies();
  Task<void> send_heartbeats();
  Task<void> receive_center(FrameHead frame, ChunkHead head);
  void handle(const Message& message);
  void ask_time();
  void hear_time(const Pong& pong);
  void take_turn(RoundId round);
  void push_received(RoundId round);
  void resend(ChunkId id);
  void answer_probe(const Probe& probe);
  Outbox::Item chunk_item(const Exchange& exchange, std::uint32_t chunk) const;
  std::size_t chunk_count(std::size_t floats) const;
  std::span<float> chunk_of(std::span<float> values, std::uint32_t chunk) const;
  GroupState& state(GroupId group);
  [[noreturn]] void fail(ClientFailure::Kind kind, const std::string& what) const;
  [[noreturn]] void fail_lost(const Error& error) const;

  Host host_;
  ClientOptions options_;
  std::uint64_t job_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Outbox> outbox_;
  ClientEvents* events_ = nullptr;
  std::vector<std::unique_ptr<GroupState>> groups_;
  std::optional<Begin> begin_;
  Event begun_;
  Event ready_;
  Event ended_;
  ClockOffset clock_;
  HeardRhythms rhythms_;
  std::uint64_t ping_ = 0;  ///< the last one's number
  bool ping_open_ = false;
  TimePoint ping_asked_at_;
  TimePoint received_at_;  ///< the head that was read last
  bool leaving_ = false;
  std::uint64_t bytes_pushed_ = 0;
  std::uint64_t bytes_pulled_ = 0;
  PushTimes push_times_;
};

}  // namespace stagger
