#include "engine/simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/job.hpp"
#include "engine/worker.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr const char* ps_name = "ps";
constexpr Duration curve_interval = 1ms;  ///< how often the curve's task looks at the iteration

/// A worker with what it owns, at a fixed address.
struct SimulatedWorker {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Worker> worker;
};

std::string worker_name(std::uint32_t rank) {
  return fmt::format("worker{}", rank);
}

/// One run: the world, and the production classes in it.
class Simulation {
 public:
  Simulation(const Config& config, const Workload& workload, const SimulationOptions& options);

  SimulationResult run();

 private:
  static Config with_addresses(Config config);
  static WorldOptions world_options(const SimulationOptions& options);
  void add_nodes();
  SimulatedWorker make_worker(std::uint32_t rank);
  Task<void> follow(const TaskScope& members);
  void run_all(TaskScope& members, TaskScope& beside);
  PortFigures port_figures();

  Config config_;
  const Workload& workload_;
  const SimulationOptions& options_;
  SimWorld world_;
  SimRandom clock_chance_;
  std::vector<ClockView> clocks_;  ///< the workers'
  Registry registry_;
  ServerMetrics server_metrics_;
  WorkerMetrics worker_metrics_;
  std::unique_ptr<Server> server_;
  std::vector<SimulatedWorker> workers_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  std::vector<CurvePoint> curve_;
};

Simulation::Simulation(
    const Config& config, const Workload& workload, const SimulationOptions& options)
    : config_(with_addresses(config)),
      workload_(workload),
      options_(options),
      world_(options.seed, world_options(options)),
      clock_chance_(options.seed),
      server_metrics_(registry_),
      worker_metrics_(registry_) {
  add_nodes();
  server_ = std::make_unique<Server>(
      world_.host(ps_name),
      server_options(config_, workload.architecture(), workload.last_iteration()),
      initial_center(workload.architecture(), config_.job.seed),
      server_metrics_,
      worker_metrics_);
  const auto listening = server_->listen();
  CHECK(listening.has_value(), "a simulated port is in use");
  for (std::uint32_t rank = 0; rank < config_.cluster.workers; ++rank)
    workers_.push_back(make_worker(rank));
}

Config Simulation::with_addresses(Config config) {
  config.cluster.ps = {.host = ps_name, .port = 7000};
  config.cluster.listen = config.cluster.ps;
  return config;
}

WorldOptions Simulation::world_options(const SimulationOptions& options) {
  FabricOptions fabric;
  fabric.payload_scale = options.wire_bytes_per_byte;
  fabric.tcp = options.tcp;
  return {.fabric = fabric, .compute_jitter = options.compute_jitter, .log_sink = {}};
}

void Simulation::add_nodes() {
  world_.add_node(ps_name, options_.ps.value_or(options_.node));
  const std::uint32_t workers = config_.cluster.workers;
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    NodeOptions node = options_.node;
    if (rank + options_.stragglers >= workers) node.compute_scale *= options_.straggler_factor;
    const double offset = to_seconds(options_.clock_offset_max) * (2 * clock_chance_.uniform() - 1);
    node.clock.offset = from_seconds(offset);
    node.clock.drift_ppm = options_.clock_drift_ppm_max * (2 * clock_chance_.uniform() - 1);
    clocks_.push_back(node.clock);
    world_.add_node(worker_name(rank), node);
  }
}

SimulatedWorker Simulation::make_worker(std::uint32_t rank) {
  WorkerOptions settings = worker_options(
      config_,
      workload_.architecture(),
      workload_.last_iteration(),
      static_cast<std::int32_t>(rank));
  if (options_.timeline_of.value() > 0) {
    timelines_.push_back(std::make_unique<Timeline>(options_.timeline_of));
    settings.client.timeline = timelines_.back().get();
  }
  SimulatedWorker made;
  made.backend = workload_.make_backend({.flops_per_second = options_.flops_per_second});
  made.worker = std::make_unique<Worker>(world_.host(worker_name(rank)), settings, *made.backend);
  return made;
}

/// Evaluates the center on the way, beside the run and without taking its time.
Task<void> Simulation::follow(const TaskScope& members) {
  std::uint64_t next = options_.evaluation_interval;
  while (members.size() > 0) {
    co_await world_.clock().sleep_until(world_.clock().now() + curve_interval);
    const Iteration reached = server_->status().iteration;
    if (reached.value() < next) continue;
    if (const auto evaluation = workload_.evaluate(server_->center())) {
      curve_.push_back(
          {.iteration = reached,
           .virtual_seconds = to_seconds(world_.clock().now().time_since_epoch()),
           .evaluation = *evaluation});
    }
    next = reached.value() + options_.evaluation_interval;
  }
}

PortFigures Simulation::port_figures() {
  const DropTailPort& port = world_.port(ps_name);
  const LinkModel& link = world_.ingress(ps_name);
  const RateWindows& passed = options_.tcp ? port.passed() : link.passed();
  const double seconds = to_seconds(server_->totals().ended_at - server_->totals().started_at);
  return {
      .bytes = options_.tcp ? port.counters().bytes : link.bytes_total(),
      .segments = port.counters().segments,
      .drops = port.counters().drops,
      .queue_bytes_peak = static_cast<double>(port.counters().queue_bytes_peak),
      .queue_bytes_mean = seconds > 0 ? port.counters().queue_byte_seconds / seconds : 0.0,
      .ingress_bytes_peak = passed.peak_bytes(),
      .ingress_bytes_mean = passed.mean_bytes(),
      .offered_bytes_peak = port.offered().peak_bytes(),
      .offered_bytes_mean = port.offered().mean_bytes()};
}

/// A world that stands still is left in order before that is said.
void Simulation::run_all(TaskScope& members, TaskScope& beside) {
  try {
    world_.run(members);
  } catch (const Deadlock&) {
    members.cancel();
    beside.cancel();
    world_.run(members);
    world_.run(beside);
    throw;
  }
  world_.run(beside);
  world_.run("join", members.join());
}

SimulationResult Simulation::run() {
  TaskScope scope(world_.executor(), "simulation");
  scope.spawn("server", server_->run());
  for (std::uint32_t rank = 0; rank < config_.cluster.workers; ++rank)
    scope.spawn(fmt::format("worker {}", rank), workers_[rank].worker->run());
  TaskScope beside(world_.executor(), "curve");
  if (options_.evaluation_interval > 0) beside.spawn("follow", follow(scope));
  run_all(scope, beside);

  SimulationResult result{
      .center = server_->center(),
      .totals = server_->totals(),
      .status = server_->status(),
      .virtual_seconds = to_seconds(world_.clock().now().time_since_epoch()),
      .trace_hash = world_.trace_hash(),
      .events = world_.events(),
      .port = port_figures(),
      .timelines = {},
      .curve = std::move(curve_)};
  for (const WorkerStatus& worker : result.status.workers)
    result.retransmissions += worker.progress.retransmissions;
  for (std::size_t rank = 0; rank < timelines_.size(); ++rank) {
    timelines_[rank]->convert([&](TimePoint shown) { return clocks_[rank].world(shown); });
    result.timelines.push_back(*timelines_[rank]);
  }
  return result;
}

}  // namespace

SimulationResult simulate(
    const Config& config, const Dataset& train, const SimulationOptions& options) {
  return simulate(config, *make_training(config, train), options);
}

SimulationResult simulate(
    const Config& config, const Workload& workload, const SimulationOptions& options) {
  return Simulation(config, workload, options).run();
}

}  // namespace stagger
