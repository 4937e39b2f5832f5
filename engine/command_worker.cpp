#include <memory>
#include <utility>

#include "engine/commands.hpp"
#include "engine/job.hpp"
#include "engine/role.hpp"
#include "engine/worker.hpp"
#include "engine/workload.hpp"

namespace stagger {

ExitCode run_worker(const WorkerCommand& command) {
  Config config = load_config(command.common.config_path, command.common.overrides);
  if (command.ps) {
    const auto endpoint = parse_endpoint(*command.ps);
    if (!endpoint) throw ConfigError("--ps " + *command.ps + ": " + endpoint.error().detail);
    config.cluster.ps = *endpoint;
  }
  if (config.cluster.ps.port == 0) {
    throw ConfigError(
        command.common.config_path +
        ": cluster.ps: port 0 cannot be dialled; give the PS's address with --ps or STAGGER_PS");
  }
  if (command.rank >= static_cast<std::int64_t>(config.cluster.workers)) {
    throw ConfigError(
        "--rank " + std::to_string(command.rank) + ": cluster.workers is " +
        std::to_string(config.cluster.workers) + ", so ranks are 0.." +
        std::to_string(config.cluster.workers - 1));
  }
  const std::string name = command.rank < 0 ? "worker" : "worker/" + std::to_string(command.rank);
  const Pace pace = config.backend.kind == BackendKind::replay ? Pace::nominal : Pace::own;
  Role role(
      name,
      config.job.seed + static_cast<std::uint64_t>(command.rank + 1),
      tcp_options(config),
      pace);
  const auto workload = load_workload(role.host().storage, config, DataNeed::train);
  const WorkerOptions options =
      worker_options(config, workload->architecture(), workload->last_iteration(), command.rank);
  const auto backend = workload->make_backend({});
  Worker worker(role.host(), options, *backend);
  role.run(worker.run(), [&worker, &role] {
    if (worker.started()) {
      worker.leave("signal");
    } else {
      role.scope().cancel();
    }
  });
  return ExitCode::success;
}

}  // namespace stagger
