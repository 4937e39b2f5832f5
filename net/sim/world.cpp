#include "net/sim/world.hpp"

#include <utility>

#include "net/sim/compute.hpp"
#include "net/sim/network.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

std::string virtual_time(const Clock& clock) {
  return std::to_string(to_seconds(clock.now().time_since_epoch()));
}

/// A stream of random numbers of its own for every purpose and node.
SimRandom random_of(std::uint64_t seed, std::string_view purpose) {
  TraceHash hash;
  hash.add(seed);
  hash.add(purpose);
  return SimRandom(hash.value());
}

std::string stand_still(const TaskScope& scope, const Clock& clock) {
  std::string text = "the simulation stands still at " + virtual_time(clock) + " s; waiting:";
  for (const std::string& name : scope.running())
    text.append(" ").append(name);
  return text;
}

}  // namespace

struct SimWorld::Node {
  FabricNode& wires;
  SimNodeClock clock;
  SimNetwork network;
  SimStorage storage;
  SimCompute compute;
  Log log;
  std::uint64_t seed;
};

SimWorld::SimWorld(std::uint64_t seed, WorldOptions options)
    : seed_(seed),
      options_(std::move(options)),
      context_(1),
      clock_(context_.get_executor()),
      fabric_(clock_, options_.fabric, random_of(seed, "fabric")) {
  if (!options_.log_sink)
    options_.log_sink = [](std::string_view) {
    };
}

SimWorld::~SimWorld() = default;

void SimWorld::add_node(const std::string& name, const NodeOptions& options) {
  FabricNode& wires = fabric_.add_node(name, options);
  const SimCompute::Options compute{
      .scale = options.compute_scale, .jitter = options_.compute_jitter};
  const Clock& clock = clock_;
  nodes_[name] = std::unique_ptr<Node>(new Node{
      .wires = wires,
      .clock = SimNodeClock(clock_, options.clock),
      .network = SimNetwork(executor(), fabric_, wires),
      .storage = {},
      .compute = SimCompute(executor(), clock_, compute, random_of(seed_, "compute " + name)),
      .log = Log(
          name,
          options_.log_level_min,
          [&clock] { return virtual_time(clock); },
          options_.log_sink),
      .seed = random_of(seed_, "node " + name).next()});
}

Host SimWorld::host(const std::string& name) {
  if (!nodes_.contains(name)) add_node(name, NodeOptions{});
  Node& parts = node(name);
  return Host{
      .executor = executor(),
      .clock = parts.clock,
      .network = parts.network,
      .storage = parts.storage,
      .compute = parts.compute,
      .log = parts.log,
      .seed = parts.seed};
}

void SimWorld::run(const TaskScope& scope, TimePoint limit) {
  for (settle(); scope.size() > 0; settle()) {
    if (!fire_one(limit)) throw Deadlock(stand_still(scope, clock_));
  }
}

void SimWorld::run(std::string_view name, Task<void> task, TimePoint limit) {
  TaskScope scope(executor(), "simulation");
  scope.spawn(name, std::move(task));
  try {
    run(scope, limit);
  } catch (const Deadlock&) {
    scope.cancel();
    run(scope, time_point_max);  // what cannot be interrupted ends first
    throw;
  }
  if (scope.failure()) std::rethrow_exception(scope.failure());
}

void SimWorld::run_until_idle() {
  settle();
  while (fire_one(time_point_max))
    settle();
}

void SimWorld::run_until(TimePoint time) {
  settle();
  while (fire_one(time))
    settle();
  clock_.advance_to(time);
}

void SimWorld::crash(const std::string& name) {
  fabric_.crash(fabric_node(name));
}

void SimWorld::set_clogged(const std::string& name, bool clogged) {
  fabric_.set_clogged(fabric_node(name), clogged);
}

SimStorage& SimWorld::storage(const std::string& name) {
  return node(name).storage;
}

SimWorld::Node& SimWorld::node(const std::string& name) {
  const auto found = nodes_.find(name);
  CHECK(found != nodes_.end(), "no such node", name);
  return *found->second;
}

FabricNode& SimWorld::fabric_node(const std::string& name) {
  return node(name).wires;
}

void SimWorld::settle() {
  context_.restart();
  context_.poll();
}

bool SimWorld::fire_one(TimePoint limit) {
  const std::optional<TimePoint> next = clock_.next();
  if (!next || *next > limit) return false;
  clock_.fire_next();
  ++events_;
  return true;
}

}  // namespace stagger
