#include "engine/simulation.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/job.hpp"
#include "engine/worker.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

/// A worker with what it owns, at a fixed address.
struct SimulatedWorker {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Worker> worker;
};

SimulatedWorker make_worker(
    SimWorld& world,
    const Config& config,
    const Workload& workload,
    const SimulationOptions& options,
    std::uint32_t rank) {
  const auto worker_settings = worker_options(
      config, workload.architecture(), workload.last_iteration(), static_cast<std::int32_t>(rank));
  SimulatedWorker made;
  made.backend = workload.make_backend({.flops_per_second = options.flops_per_second});
  made.worker = std::make_unique<Worker>(
      world.host(fmt::format("worker{}", rank)), worker_settings, *made.backend);
  return made;
}

}  // namespace

SimulationResult simulate(
    const Config& config, const Dataset& train, const SimulationOptions& options) {
  return simulate(config, *make_training(config, train), options);
}

SimulationResult simulate(
    const Config& original, const Workload& workload, const SimulationOptions& options) {
  Config config = original;
  config.cluster.ps = {.host = "ps", .port = 7000};
  config.cluster.listen = config.cluster.ps;
  SimWorld world(
      options.seed, {.fabric = {}, .compute_jitter = options.compute_jitter, .log_sink = {}});
  world.add_node("ps", options.node);
  for (std::uint32_t rank = 0; rank < config.cluster.workers; ++rank) {
    world.add_node(fmt::format("worker{}", rank), options.node);
  }

  Registry registry;
  ServerMetrics server_metrics(registry);
  WorkerMetrics worker_metrics(registry);
  Server server(
      world.host("ps"),
      server_options(config, workload.architecture(), workload.last_iteration()),
      initial_center(workload.architecture(), config.job.seed),
      server_metrics,
      worker_metrics);
  const auto listening = server.listen();
  CHECK(listening.has_value(), "a simulated port is in use");

  std::vector<SimulatedWorker> workers;
  TaskScope scope(world.executor(), "simulation");
  scope.spawn("server", server.run());
  for (std::uint32_t rank = 0; rank < config.cluster.workers; ++rank) {
    workers.push_back(make_worker(world, config, workload, options, rank));
    scope.spawn(fmt::format("worker {}", rank), workers.back().worker->run());
  }
  world.run(scope);
  world.run("join", scope.join());

  return {
      .center = server.center(),
      .totals = server.totals(),
      .status = server.status(),
      .virtual_seconds = to_seconds(world.clock().now().time_since_epoch()),
      .trace_hash = world.trace_hash(),
      .events = world.events()};
}

}  // namespace stagger
