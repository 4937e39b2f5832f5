#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "net/host.hpp"
#include "net/scope.hpp"
#include "net/sim/clock.hpp"
#include "net/sim/fabric.hpp"
#include "net/sim/storage.hpp"

namespace stagger {

struct WorldOptions {
  FabricOptions fabric;
  double compute_jitter = 0.0;  ///< nominal times grow by up to this fraction, at random
  LogLevel log_level_min = LogLevel::warning;
  Log::Sink log_sink;  ///< empty: log lines are dropped
};

/// Tasks wait for each other, or for a time after the limit, and nothing can happen any more.
class Deadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A world in one thread: nodes with clocks, links, disks and processors, on virtual time.
///
/// For:     `stagger simulate` and tests; production Servers and Workers run on its Hosts.
/// Owner:   the test or command; outlives every component that lives in it.
/// Thread:  the one that calls run…().
/// Cancel:  a run ends when its scope has ended; cancel the scope from a task of the world.
/// Failure: Deadlock from run(), naming who waits; otherwise what the tasks throw.
///
/// The same seed and the same program give the same trace_hash(), on every machine.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed, WorldOptions options = {});
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  void add_node(const std::string& name, const NodeOptions& options);

  /// The node's door to the world; the node is made with default options if need be. References
  /// stay valid.
  Host host(const std::string& name);

  Executor executor() { return context_.get_executor(); }

  Clock& clock() { return clock_; }

  /// Runs until the scope has no task left. Throws Deadlock when it can't get there before `limit`;
  /// a failed task's exception stays with the scope.
  void run(const TaskScope& scope, TimePoint limit = time_point_max);

  /// Runs one task to its end and rethrows its failure.
  void run(std::string_view name, Task<void> task, TimePoint limit = time_point_max);

  /// Runs until no timer is left and nothing is ready.
  void run_until_idle();

  /// Runs everything up to and including `time`, which it then is.
  void run_until(TimePoint time);

  /// Faults. A crashed node loses its connections and listeners, and may make new ones; its tasks
  /// are the caller's to cancel. A clogged node is silent: what is sent to or by it arrives after
  /// set_clogged(…, false).
  void crash(const std::string& name);
  void set_clogged(const std::string& name, bool clogged);
  SimStorage& storage(const std::string& name);

  const LinkModel& egress(const std::string& name) { return fabric_node(name).egress; }

  const LinkModel& ingress(const std::string& name) { return fabric_node(name).ingress; }

  /// The switch port before the node, where segments are carried (FabricOptions::tcp).
  const DropTailPort& port(const std::string& name) { return fabric_node(name).port; }

  /// Adds to the trace what the frames do not show.
  void trace(std::string_view text) { fabric_.trace().add(text); }

  /// FNV-1a over every delivered frame (time, nodes, sizes, head) and every trace().
  std::uint64_t trace_hash() { return fabric_.trace().value(); }

  /// Timers fired so far: the size of a run.
  std::uint64_t events() const { return events_; }

 private:
  struct Node;

  Node& node(const std::string& name);
  FabricNode& fabric_node(const std::string& name);
  void settle();
  bool fire_one(TimePoint limit);

  std::uint64_t seed_;
  WorldOptions options_;
  boost::asio::io_context context_;
  SimClock clock_;
  SimFabric fabric_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::uint64_t events_ = 0;
};

}  // namespace stagger
