#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend.hpp"
#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "engine/worker.hpp"
#include "net/sim/world.hpp"
#include "observability/catalog.hpp"
#include "ps/server.hpp"

namespace stagger {

/// A Server and its Workers in a simulated world, each in a scope of its own, so that one can fail
/// and the others go on.
///
/// For:     tests of faults and changes; simulate() is for runs in which nothing happens.
/// Owner:   the test. The config's addresses become those of the world: "ps", "worker0", "worker1",
/// …
class SimCluster {
 public:
  struct Options {
    std::uint64_t seed = 1;
    double flops_per_second = 1e6;  ///< slow: an iteration takes some milliseconds
    NodeOptions node;
    std::uint64_t window_bytes = FabricOptions().window_bytes;
    // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
    std::vector<NodeOptions> workers = {};  ///< of each rank; empty: as `node`
    /// Around a rank's backend; empty: none.
    std::function<std::unique_ptr<Backend>(std::uint32_t rank, std::unique_ptr<Backend>)> wrap;
  };

  SimCluster(Config config, Dataset train, Options options);

  SimCluster(Config config, Dataset train)
      : SimCluster(std::move(config), std::move(train), Options()) {}

  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  SimWorld& world() { return world_; }

  Server& server() { return *server_; }

  Worker& worker(std::uint32_t rank) { return *workers_.at(rank).back()->worker; }

  ServerMetrics& metrics() { return server_metrics_; }

  WorkerMetrics& worker_metrics() { return worker_metrics_; }

  const Registry& registry() const { return registry_; }

  const std::string& log() const { return log_; }

  const Config& config() const { return config_; }

  void start_server();

  /// A new process of this rank; an earlier one must have ended.
  void start_worker(std::uint32_t rank) { start_worker(rank, config_); }

  void start_worker(std::uint32_t rank, const Config& config);
  void start_all();

  /// Lets time pass until the worker has reached this iteration.
  void run_until_iteration(std::uint32_t rank, std::uint64_t iteration);

  /// Lets `duration` pass.
  void run_for(Duration duration);

  /// Until the server and every worker have ended. Throws the server's failure.
  void run_to_end();

  /// Until this worker's newest process has ended; why it failed, if it did.
  std::optional<std::string> end_of_worker(std::uint32_t rank);

  /// The outcome of a change, once it is there. Time passes meanwhile.
  Result<Iteration> change_period(std::uint32_t period);
  Result<Iteration> stop();

  Membership::State state(std::uint32_t rank) const;
  std::uint64_t refused(RefusalReason reason) const;
  std::uint64_t refused_frames() const;  ///< of all reasons

 private:
  struct Process {
    explicit Process(Executor executor) : scope(std::move(executor), "worker") {}

    std::unique_ptr<Backend> backend;
    std::unique_ptr<Worker> worker;
    TaskScope scope;
  };

  using Outcome = std::optional<Result<Iteration>>;

  static Task<void> ask_period(Server& server, std::uint32_t period, Outcome& outcome);
  static Task<void> ask_stop(Server& server, Outcome& outcome);

  void drive(TaskScope& scope) { world_.run(scope, limit()); }

  TimePoint limit() { return world_.clock().now() + 3600s; }

  Config config_;
  Dataset train_;
  Options options_;
  std::string log_;
  SimWorld world_;
  Registry registry_;
  ServerMetrics server_metrics_;
  WorkerMetrics worker_metrics_;
  std::unique_ptr<Server> server_;
  TaskScope server_scope_;
  std::vector<std::vector<std::unique_ptr<Process>>> workers_;  ///< by rank, newest last
};

}  // namespace stagger
