#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend.hpp"
#include "engine/learning_rate.hpp"
#include "engine/synchronizer.hpp"
#include "net/event.hpp"
#include "net/host.hpp"
#include "net/scope.hpp"
#include "observability/histogram.hpp"
#include "ps/client.hpp"
#include "ps/plan.hpp"

namespace stagger {

struct WorkerOptions {
  ClientOptions client;
  LearningRateSchedule learning_rate;
  SgdConstants sgd;  ///< momentum and weight decay; the rate comes from the schedule
  std::uint64_t profile_iterations = 5;
  bool final_round = true;
};

/// One worker's life: join, profile, train, leave.
///
/// For:     `stagger worker`, and a node of the simulator.
/// Owner:   the command; host and backend outlive it.
/// Thread:  the loop; the backend's calls run on the compute thread.
/// Cancel:  run() cancelled: every task of the worker ends, the connection closes.
/// Failure: run() throws the first failure of any of its tasks (ClientFailure; what the backend
/// throws).
///
/// Tasks (all in one scope): train (this class), exchange_group (one per due group), and the
/// client's write_requests, read_replies, send_heartbeats.
class Worker final : private ClientEvents {
 public:
  Worker(Host host, WorkerOptions options, Backend& backend);

  Task<void> run();

  /// Leaves after the iteration under way, with a farewell; the others go on.
  void leave(std::string reason);

  /// Whether training has begun; before that there is nothing to take leave from.
  bool started() const { return synchronizer_ != nullptr; }

  WorkerId rank() const { return rank_; }

  Iteration iteration() const { return iteration_; }

  /// What is known of the PS's clock.
  const ClockOffset& clock() const { return client_.clock(); }

  /// The replica, for tests and the drift metric; not while run() computes.
  const Arena& replica() { return synchronizer_->values(); }

 private:
  /// What a piece of computing is for.
  struct Piece {
    Activity activity = Activity::forward;
    GroupId group;
  };

  Task<void> train();
  Task<void> profile();
  Task<void> iterate(Iteration iteration);
  void note_iteration(Iteration iteration, Duration duration);
  Task<void> forward(const Plan& plan);
  Task<void> backward(const Plan& plan, Iteration iteration);
  Task<void> await_permission(Iteration iteration);
  Task<void> end_training();
  void accept(const Plan& plan);
  Task<void> backward_group(const Plan& plan, GroupId group, Iteration iteration);
  Task<void> compute(Piece piece, std::function<void()> work, Duration nominal);

  // ClientEvents
  Iteration hold_iteration() override;
  void prepared(const Prepare& prepare, Iteration hold) override;
  void committed(const Commit& commit) override;
  Heartbeat take_progress() override;

  Host host_;
  WorkerOptions options_;
  Backend& backend_;
  Client client_;
  TaskScope scope_;
  std::unique_ptr<Synchronizer> synchronizer_;

  WorkerId rank_;
  PlanHistory plans_;
  Iteration iteration_;  ///< under way
  Iteration finished_;
  Iteration last_iteration_;
  Iteration hold_;  ///< promised not to begin a later one; 0: free
  Event hold_lifted_;
  bool leaving_ = false;
  std::string leave_reason_;

  std::uint64_t samples_ = 0;
  double loss_ = 0.0;
  std::size_t batch_size_ = 0;  ///< written on the compute thread, read after it
  double batch_loss_ = 0.0;     ///< likewise
  Duration computed_{0};
  std::vector<Duration> iteration_times_;
  QuantileSketch iteration_sketch_;  ///< after iteration 1, as is …
  Duration iterations_total_{0};     ///< … their sum
  Iteration backward_iteration_;     ///< the last whose backward has begun; 0: none yet
  TimePoint backward_began_at_;
};

}  // namespace stagger
