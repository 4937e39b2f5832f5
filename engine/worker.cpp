#include "engine/worker.hpp"

#include <string>
#include <utility>

#include "engine/layer_times.hpp"

namespace stagger {

Worker::Worker(Host host, WorkerOptions options, Backend& backend)
    : host_(std::move(host)),
      options_(std::move(options)),
      backend_(backend),
      client_(host_, options_.client),
      scope_(host_.executor, "worker"),
      hold_lifted_(host_.executor) {
  hold_lifted_.set();
}

Task<void> Worker::run() {
  const Welcome welcome = co_await client_.join();
  rank_ = welcome.rank;
  host_.log.info("joined", {{"rank", rank_.value()}, {"incarnation", welcome.incarnation.value()}});
  client_.serve(scope_, *this);
  if (welcome.profile_wanted) scope_.spawn("profile", profile());
  scope_.spawn("train", train());
  co_await scope_.join();
}

Task<void> Worker::profile() {
  LayerTimes times(host_, backend_);
  co_await times.measure(options_.profile_iterations, rank_);
  client_.send(times.profile());
}

Task<void> Worker::train() {
  const Begin begin = co_await client_.begin(options_.client.timeouts.join);
  for (const Plan& plan : begin.plans)
    accept(plan);
  last_iteration_ = begin.last_iteration;
  synchronizer_ = std::make_unique<Synchronizer>(host_, client_, rank_, scope_);
  synchronizer_->bind(backend_.parameters(), plans_.latest(), options_.sgd.momentum != 0.0F);
  backend_.bind(synchronizer_->values(), synchronizer_->gradients());
  client_.ready();
  co_await synchronizer_->adopt_center(plans_.latest());

  for (Iteration iteration = begin.first_iteration; iteration <= last_iteration_ && !leaving_;
       iteration = iteration.next()) {
    co_await await_permission(iteration);
    if (iteration > last_iteration_) break;  // a stop was agreed on while we waited
    co_await iterate(iteration);
  }
  co_await end_training();
}

/// One iteration: forward, backward with the local step of each group, exchanges beside both.
Task<void> Worker::iterate(Iteration iteration) {
  const TimePoint began = host_.clock.now();
  const Plan& plan = plans_.at(iteration);
  iteration_ = iteration;
  synchronizer_->begin_iteration(plan, iteration);
  std::function<void()> load = [this, iteration] {
    batch_size_ = backend_.load(iteration, rank_);
  };
  const GroupId input_side(static_cast<std::uint32_t>(plan.groups.size() - 1));
  co_await compute({Activity::forward, input_side}, std::move(load), Duration{0});
  co_await forward(plan);
  co_await backward(plan, iteration);
  samples_ += batch_size_;
  loss_ = batch_loss_;
  finished_ = iteration;
  note_iteration(iteration, host_.clock.now() - began);
}

/// The first one also touches memory for the first time: it is no figure of the run.
void Worker::note_iteration(Iteration iteration, Duration duration) {
  if (iteration_times_.size() < Heartbeat::samples_max) iteration_times_.push_back(duration);
  if (iteration == Iteration(1)) return;
  iteration_sketch_.record(to_seconds(duration));
  iterations_total_ += duration;
}

/// From the input side. A group whose exchange must land first holds up itself and what comes after
/// it, nothing before; groups that wait for nothing run in one piece of work.
Task<void> Worker::forward(const Plan& plan) {
  for (std::size_t next = plan.groups.size(); next > 0;) {
    const GroupId first(static_cast<std::uint32_t>(next - 1));
    co_await synchronizer_->before_forward(first);
    std::size_t last = next - 1;
    while (last > 0 &&
           !synchronizer_->reply_before_forward(GroupId(static_cast<std::uint32_t>(last - 1)))) {
      --last;
    }
    const LayerRange layers{
        plan.groups[next - 1].range.layers.begin, plan.groups[last].range.layers.end};
    std::function<void()> work = [this, first, last, layers] {
      synchronizer_->apply_reply(first);
      backend_.forward(layers);
      if (last == 0) batch_loss_ = backend_.loss();
    };
    co_await compute({Activity::forward, first}, std::move(work), backend_.forward_time(layers));
    next = last;
  }
}

/// From the output side.
Task<void> Worker::backward(const Plan& plan, Iteration iteration) {
  backward_iteration_ = iteration;
  backward_began_at_ = host_.clock.now();
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    co_await backward_group(plan, GroupId(g), iteration);
  }
}

/// A group's local step follows its backward at once, and resumes its communication task if it is
/// due.
Task<void> Worker::backward_group(const Plan& plan, GroupId group, Iteration iteration) {
  const LayerRange layers = plan.groups[group.value()].range.layers;
  const Duration nominal = backend_.backward_time(layers);
  SgdConstants sgd = options_.sgd;
  sgd.learning_rate = static_cast<float>(options_.learning_rate.at(iteration.value()));
  std::function<void()> backward = [this, layers] {
    backend_.backward(layers);
  };
  std::function<void()> step = [this, &plan, group, iteration, sgd] {
    synchronizer_->step(plan, group, iteration, sgd);
  };
  if (synchronizer_->reply_late(plan, group, iteration)) {
    co_await compute({Activity::backward, group}, std::move(backward), nominal);
    co_await synchronizer_->before_step(group);
    co_await compute({Activity::backward, group}, std::move(step), Duration{0});
  } else {
    std::function<void()> both = [&backward, &step] {
      backward();
      step();
    };
    co_await compute({Activity::backward, group}, std::move(both), nominal);
  }
  synchronizer_->backward_done(plan, group, iteration);
}

Task<void> Worker::compute(Piece piece, std::function<void()> work, Duration nominal) {
  const TimePoint began = host_.clock.now();
  co_await host_.compute.run(std::move(work), nominal);
  computed_ += host_.clock.now() - began;
  client_.record(piece.activity, {.group = piece.group, .iteration = iteration_}, began);
}

/// A change of plan is being agreed on: no iteration after the promised one begins before the
/// commit.
Task<void> Worker::await_permission(Iteration iteration) {
  const TimePoint began = host_.clock.now();
  while (hold_.value() > 0 && iteration > hold_)
    co_await hold_lifted_.wait();
  synchronizer_->add_exposed(host_.clock.now() - began);
}

Task<void> Worker::end_training() {
  co_await synchronizer_->settle();
  const Plan& plan = plans_.at(last_iteration_);
  const bool early = leaving_ && finished_ < last_iteration_;
  if (options_.final_round && !early && !plan.policy.pushes_gradients()) {
    co_await synchronizer_->final_round(plan, last_iteration_);
  }
  Farewell farewell;
  farewell.early = early;
  farewell.reason = early ? leave_reason_ : "training has ended";
  farewell.progress = client_.progress();
  farewell.bytes_pushed = client_.bytes_pushed();
  farewell.bytes_pulled = client_.bytes_pulled();
  farewell.lateness_counts = synchronizer_->lateness_sketch().counts();
  farewell.push_counts = client_.push_times().push().counts();
  farewell.ready_to_done_counts = client_.push_times().ready_to_done().counts();
  farewell.iteration_counts = iteration_sketch_.counts();
  farewell.iterations = iterations_total_;
  co_await client_.farewell(farewell);
  scope_.cancel();  // heartbeats sleep; nothing else is left
}

/// A plan comes from the PS: what it may get wrong is refused here, not met as a broken invariant
/// later.
void Worker::accept(const Plan& plan) {
  const bool fits = plans_.empty() ? plan.first_iteration.value() >= 1
                                   : plans_.latest().version < plan.version &&
                                         plans_.latest().first_iteration <= plan.first_iteration &&
                                         plans_.latest().groups.size() == plan.groups.size();
  std::size_t end = backend_.layers();
  bool partition = !plan.groups.empty();
  for (const PlannedGroup& group : plan.groups) {
    partition = partition && group.range.layers.end == end && group.range.layers.begin < end;
    end = group.range.layers.begin;
  }
  if (fits && partition && end == 0) {
    plans_.add(plan);
    return;
  }
  throw ClientFailure(
      ClientFailure::Kind::refused,
      "plan version " + std::to_string(plan.version.value()) +
          " of the PS does not fit this worker: " +
          (fits ? "its groups are no partition of the layers"
                : "it does not follow the last plan"));
}

void Worker::leave(std::string reason) {
  leave_reason_ = std::move(reason);
  leaving_ = true;
}

Iteration Worker::hold_iteration() {
  return iteration_.next();
}

void Worker::prepared(const Prepare& /*prepare*/, Iteration hold) {
  hold_ = hold;
  hold_lifted_.reset();
}

void Worker::committed(const Commit& commit) {
  for (const Plan& plan : commit.plan)
    accept(plan);
  if (commit.last_iteration.value() > 0) last_iteration_ = commit.last_iteration;
  hold_ = Iteration(0);
  hold_lifted_.set();
}

Heartbeat Worker::take_progress() {
  Heartbeat progress{
      .iteration = finished_,
      .samples = samples_,
      .loss = loss_,
      .exposed = synchronizer_ ? synchronizer_->exposed() : Duration{0},
      .compute = computed_,
      .iterations = std::exchange(iteration_times_, {}),
      .lateness = {},
      .overrun = {},
      .round_trip = Duration{0},
      .retransmissions = 0};
  const auto began = client_.clock().ps_time(backward_began_at_);
  if (began && backward_iteration_.value() > 0) {
    progress.backward = BackwardStart{.iteration = backward_iteration_, .at = *began};
  }
  if (synchronizer_) {
    progress.lateness = synchronizer_->take_lateness();
    progress.overrun = synchronizer_->take_overrun();
  }
  return progress;
}

}  // namespace stagger
