#include "tests/support/sim_cluster.hpp"

#include <exception>
#include <utility>

#include "engine/compute_backend.hpp"
#include "engine/job.hpp"
#include "observability/check.hpp"

namespace stagger {
namespace {

Config in_the_world(Config config) {
  config.cluster.ps = {.host = "ps", .port = 7000};
  config.cluster.listen = config.cluster.ps;
  return config;
}

std::string node_of(std::uint32_t rank) {
  return "worker" + std::to_string(rank);
}

}  // namespace

SimCluster::SimCluster(Config config, Dataset train, Options options)
    : config_(in_the_world(std::move(config))),
      train_(std::move(train)),
      options_(std::move(options)),
      world_(
          options_.seed,
          {.fabric = {.window_bytes = options_.window_bytes, .limits = {}},
           .compute_jitter = 0.05,
           .log_level_min = LogLevel::info,
           .log_sink =
               [this](std::string_view line) {
                 log_.append(line).append("\n");
               }}),
      server_metrics_(registry_),
      worker_metrics_(registry_),
      server_scope_(world_.executor(), "server"),
      workers_(config_.cluster.workers) {
  world_.add_node("ps", options_.node);
  for (std::uint32_t rank = 0; rank < config_.cluster.workers; ++rank) {
    const bool own = rank < options_.workers.size();
    world_.add_node(node_of(rank), own ? options_.workers[rank] : options_.node);
  }
  const auto model = build_model(config_, train_, 1);
  const Iteration last = last_iteration(config_, batch_order(config_, train_));
  server_ = std::make_unique<Server>(
      world_.host("ps"),
      server_options(config_, *model, last),
      initial_center(*model, config_.job.seed),
      server_metrics_,
      worker_metrics_);
}

/// A test that has failed leaves tasks behind: they end before what they use.
SimCluster::~SimCluster() {
  for (auto& processes : workers_) {
    for (const auto& process : processes) {
      process->scope.cancel();
      drive(process->scope);
    }
  }
  server_scope_.cancel();
  drive(server_scope_);
}

void SimCluster::start_server() {
  CHECK(server_->listen().has_value(), "a simulated port is in use");
  server_scope_.spawn("server", server_->run());
}

void SimCluster::start_worker(std::uint32_t rank, const Config& config) {
  const Config settings = in_the_world(config);
  auto model = build_model(settings, train_, settings.data.batch);
  BatchOrder order = batch_order(settings, train_);
  const auto options = worker_options(
      settings, *model, last_iteration(settings, order), static_cast<std::int32_t>(rank));
  auto process = std::make_unique<Process>(world_.executor());
  process->backend = std::make_unique<ComputeBackend>(
      std::move(model),
      train_,
      std::move(order),
      ComputeBackend::Options{.flops_per_second = options_.flops_per_second});
  if (options_.wrap) process->backend = options_.wrap(rank, std::move(process->backend));
  process->worker =
      std::make_unique<Worker>(world_.host(node_of(rank)), options, *process->backend);
  process->scope.spawn("worker", process->worker->run());
  workers_.at(rank).push_back(std::move(process));
}

void SimCluster::start_all() {
  start_server();
  for (std::uint32_t rank = 0; rank < config_.cluster.workers; ++rank)
    start_worker(rank);
}

void SimCluster::run_until_iteration(std::uint32_t rank, std::uint64_t iteration) {
  const TimePoint end = limit();
  while (worker(rank).iteration().value() < iteration) {
    CHECK(world_.clock().now() < end, "no progress at iteration", worker(rank).iteration());
    run_for(100us);
  }
}

void SimCluster::run_for(Duration duration) {
  world_.run_until(world_.clock().now() + duration);
}

void SimCluster::run_to_end() {
  drive(server_scope_);
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_[rank].empty()) end_of_worker(rank);
  }
  if (server_scope_.failure()) std::rethrow_exception(server_scope_.failure());
}

std::optional<std::string> SimCluster::end_of_worker(std::uint32_t rank) {
  TaskScope& scope = workers_.at(rank).back()->scope;
  drive(scope);
  if (!scope.failure()) return std::nullopt;
  try {
    std::rethrow_exception(scope.failure());
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

Task<void> SimCluster::ask_period(Server& server, std::uint32_t period, Outcome& outcome) {
  outcome = co_await server.change_period(period, "test");
}

Task<void> SimCluster::ask_stop(Server& server, Outcome& outcome) {
  outcome = co_await server.stop("test");
}

Result<Iteration> SimCluster::change_period(std::uint32_t period) {
  Outcome outcome;
  world_.run("change_period", ask_period(*server_, period, outcome), limit());
  return outcome.value();
}

Result<Iteration> SimCluster::stop() {
  Outcome outcome;
  world_.run("stop", ask_stop(*server_, outcome), limit());
  return outcome.value();
}

Membership::State SimCluster::state(std::uint32_t rank) const {
  return server_->status().workers.at(rank).member.state;
}

std::uint64_t SimCluster::refused(RefusalReason reason) const {
  return static_cast<std::uint64_t>(
      server_metrics_.refused_frames_total.at(to_string(reason)).value());
}

std::uint64_t SimCluster::refused_frames() const {
  using enum RefusalReason;
  std::uint64_t total = 0;
  for (const RefusalReason reason :
       {bad_frame,
        bad_message,
        unauthorized,
        wrong_job,
        not_a_member,
        wrong_plan,
        unknown_group,
        wrong_length,
        stale,
        repeated,
        nonfinite,
        overloaded}) {
    total += refused(reason);
  }
  return total;
}

}  // namespace stagger
