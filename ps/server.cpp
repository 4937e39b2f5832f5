#include "ps/server.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "observability/check.hpp"
#include "ps/server_change.hpp"
#include "ps/server_drift.hpp"
#include "ps/session.hpp"

// The tasks of the server. What sessions ask of it is in server_sessions.cpp, changes at run time
// in server_changes.cpp.
namespace stagger {

Server::Server(
    Host host,
    ServerOptions options,
    const Arena& initial,
    ServerMetrics& metrics,
    WorkerMetrics& workers)
    : host_(std::move(host)),
      options_(std::move(options)),
      metrics_(metrics),
      worker_metrics_(workers),
      initial_(initial.layout()),
      scope_(host_.executor, "server"),
      membership_({.world = options_.policy.workers, .worker_max = options_.timeouts.worker}),
      changed_(host_.executor),
      push_turns_(options_.turns),
      reply_turns_(
          {.concurrent = options_.turns.concurrent,
           .stall_max = options_.turns.stall_max,
           .early = false}),
      turns_moved_(host_.executor) {
  initial_.assign(initial);
  if (options_.link) use_link(*options_.link);
}

Server::~Server() = default;

Result<Endpoint> Server::listen() {
  auto listener = host_.network.listen(options_.listen);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  return listener_->local();
}

Task<void> Server::run() {
  CHECK(listener_ != nullptr, "run() before listen()");
  scope_.spawn("accept_workers", accept_workers());
  scope_.spawn("watch_members", watch_members());
  scope_.spawn("watch_turns", watch_turns());
  std::exception_ptr failure;
  try {
    co_await coordinate();
  } catch (...) {
    failure = std::current_exception();
  }
  totals_.ended_at = host_.clock.now();
  listener_->close();
  for (const auto& [worker, session] : sessions_) {
    if (failure) session->post(Refuse{"the server has failed or was stopped; its log says why"});
  }
  for (const auto& session : connections_)
    session->finish();
  co_await boost::asio::this_coro::reset_cancellation_state();  // the tasks are awaited all the
                                                                // same
  const TimePoint limit = host_.clock.now() + options_.timeouts.stop;
  while (!connections_.empty() && host_.clock.now() < limit) {
    changed_.reset();
    co_await changed_.wait_until(host_.clock, limit);
  }
  scope_.cancel();
  co_await scope_.join();
  if (failure) std::rethrow_exception(failure);
}

Task<void> Server::accept_workers() {
  for (;;) {
    auto connection = co_await listener_->accept();
    if (!connection) {
      if (connection.error().code == Errc::closed) co_return;
      host_.log.warning("accept_failed", {{"reason", describe(connection.error())}});
      co_await host_.clock.sleep_until(
          host_.clock.now() + 100ms);  // out of descriptors: no spinning
      continue;
    }
    if (connections_.size() >= options_.policy.workers + options_.sessions_extra_max) {
      refused(RefusalReason::overloaded);
      (*connection)->close();
      continue;
    }
    auto session = std::make_shared<Session>(*this, std::move(*connection));
    connections_.insert(session);
    scope_.spawn("session", serve(session));
  }
}

Task<void> Server::serve(std::shared_ptr<Session> session) {
  const std::string reason = co_await session->run();
  host_.log.info("session_ended", {{"reason", reason}});
  connections_.erase(session);
  changed_.set();
}

Task<void> Server::watch_members() {
  for (;;) {
    co_await host_.clock.sleep_until(host_.clock.now() + options_.timeouts.heartbeat / 2);
    const TimePoint now = host_.clock.now();
    for (const auto& [worker, session] : sessions_) {
      if (session->busy()) membership_.heard(worker, incarnation(worker), now);
    }
    for (const WorkerId worker : membership_.evaluate(now))
      declare_gone(worker);
    warn_of_waits();
    publish_rhythm();
    if (membership_.all_ended() && started()) {
      changed_.set();
      co_return;
    }
  }
}

void Server::declare_gone(WorkerId worker) {
  const Heartbeat& progress = progress_[worker];
  host_.log.warning(
      "worker_gone",
      {{"rank", worker.value()},
       {"reason", membership_.member(worker).reason},
       {"last_iteration", progress.iteration.value()}});
  worker_metrics_.gone(worker.value());
  agreement_.drop(worker);
  if (aggregator_) aggregator_->skip_absent(worker);
  aggregator_moved();
  forget_turns(worker);
  if (const auto session = sessions_.find(worker); session != sessions_.end()) {
    session->second->post(Refuse{fmt::format(
        "rank {} was declared gone after {:.1f} s of silence; start it again to rejoin",
        worker.value(),
        to_seconds(options_.timeouts.worker))});
    session->second->retry();
    session->second->finish();
  }
  changed_.set();
}

void Server::warn_of_waits() {
  if (!aggregator_) return;
  const TimePoint now = host_.clock.now();
  for (const auto& wait : aggregator_->waiting()) {
    const auto opened = round_opened_at_.find(wait.round.group);
    if (opened == round_opened_at_.end()) continue;
    const Duration waited = now - opened->second;
    if (waited < options_.timeouts.warning) continue;
    std::string ranks;
    for (const WorkerId worker : wait.missing)
      ranks += fmt::format(" {}", worker.value());
    host_.log.if_changed(
        fmt::format("round_waits group {}", wait.round.group.value()),
        LogLevel::warning,
        "round_waits",
        {{"group", wait.round.group.value()},
         {"iteration", wait.round.iteration.value()},
         {"missing_ranks", ranks.empty() ? ranks : ranks.substr(1)}});
  }
}

std::string Server::missing_text() const {
  std::string text;
  for (const WorkerId worker : membership_.in_state(Membership::State::expected)) {
    text += fmt::format("{}worker/{}", text.empty() ? "" : ", ", worker.value());
  }
  return text;
}

Task<void> Server::await_members() {
  const TimePoint began = host_.clock.now();
  const TimePoint limit = began + options_.timeouts.join;
  TimePoint next_report = began + options_.timeouts.warning;
  while (!membership_.all_joined() || profiles_.size() < membership_.world()) {
    changed_.reset();
    co_await changed_.wait_until(host_.clock, std::min(limit, next_report));
    const TimePoint now = host_.clock.now();
    if (stop_wanted_) co_return;
    const std::string missing = missing_text();
    if (now >= limit) {
      throw ServerFailure(
          ServerFailure::Kind::members_missing,
          fmt::format(
              "members missing after {:.0f} s (timeouts.join_s): {}",
              to_seconds(options_.timeouts.join),
              missing.empty() ? "a profile" : missing));
    }
    if (now >= next_report) {
      host_.log.if_changed(
          "members_missing", LogLevel::info, "waiting_for", {{"missing", missing}});
      next_report = now + options_.timeouts.warning;
    }
  }
}

void Server::choose_period_at_start() {
  CHECK(link_.has_value(), "a period by a link that is not known");
  auto choice = choose_period(
      options_.policy,
      {.layers = options_.layers,
       .policy = {},
       .grouping = options_.grouping,
       .admission = options_.admission,
       .slots = options_.slots},
      link_->cost);
  CHECK(choice.has_value(), "a policy that was not checked");
  period_choice_ = *std::move(choice);
  options_.policy.period = period_choice_->period;
  options_.grouping.period = period_choice_->period;
  host_.log.info(
      "period_chosen", {{"period", period_choice_->period}, {"reason", period_choice_->reason}});
}

void Server::start() {
  std::vector<std::vector<LayerProfile>> profiles;
  for (const auto& [worker, measured] : profiles_) {
    auto layers = options_.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].forward = measured.forward[i];
      layers[i].backward = measured.backward[i];
    }
    profiles.push_back(std::move(layers));
  }
  options_.layers = merge_profiles(profiles);
  if (options_.slots.rule == SlotRule::measured) options_.slots.layers = latest_profile(profiles);
  if (options_.period_auto) choose_period_at_start();
  const auto verdict = resolve(options_.policy);
  CHECK(verdict.has_value(), "a policy that was not checked");
  Plan plan = make_plan(
      {.layers = options_.layers,
       .policy = verdict->policy,
       .grouping = options_.grouping,
       .admission = options_.admission,
       .slots = options_.slots});
  std::vector<LayerRange> ranges;
  for (const PlannedGroup& group : plan.groups)
    ranges.push_back(group.range.layers);
  Arena arena(ArenaLayout(initial_.layout().parameters(), ranges));
  arena.assign(initial_);
  center_.emplace(arena, options_.chunk_bytes / sizeof(float));
  center_->set_optimizer(options_.optimizer);
  const bool final_round = options_.final_round && !plan.policy.pushes_gradients();
  plans_.add(std::move(plan));
  begin_drift();
  aggregator_.emplace(
      *center_,
      plans_,
      Aggregator::Options{
          .early_chunks_max = options_.early_bytes_max / options_.chunk_bytes,
          .last_iteration = options_.last_iteration,
          .final_round = final_round,
          .learning_rate = options_.learning_rate},
      AbsentFrom{membership_});
  totals_.started_at = host_.clock.now();
  metrics_.period_iterations.set(plans_.latest().policy.period);
  metrics_.plan_version.set(plans_.latest().version.value());
}

Arena Server::center() const {
  if (center_) return center_->assemble();
  Arena arena(initial_.layout());
  arena.assign(initial_);
  return arena;
}

ServerStatus Server::status() const {
  ServerStatus status;
  status.started = started();
  status.last_iteration = options_.last_iteration;
  status.iteration = reached_;
  status.pushes_in_flight = static_cast<std::uint32_t>(in_flight_.size());
  status.pushes_in_flight_max = in_flight_max_;
  status.rounds_closed = aggregator_ ? aggregator_->rounds_closed() : 0;
  double loss = 0.0;
  std::size_t with_loss = 0;
  for (std::uint32_t rank = 0; rank < membership_.world(); ++rank) {
    const WorkerId worker(rank);
    WorkerStatus entry{.rank = worker, .member = membership_.member(worker), .progress = {}};
    if (const auto found = progress_.find(worker); found != progress_.end()) {
      entry.progress = found->second;
      status.iteration = std::max(status.iteration, entry.progress.iteration);
      status.samples += entry.progress.samples;
      if (entry.progress.iteration.value() > 0) {
        loss += entry.progress.loss;
        ++with_loss;
      }
    }
    status.workers.push_back(std::move(entry));
  }
  if (with_loss > 0) status.loss = loss / static_cast<double>(with_loss);
  return status;
}

}  // namespace stagger
