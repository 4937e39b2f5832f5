#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/exit_code.hpp"
#include "engine/virtual_cluster.hpp"

/// The commands of the program. main.cpp parses the command line, calls one, and prints what it
/// throws.
namespace stagger {

/// What every command that reads a config takes.
struct CommonOptions {
  std::string config_path;
  std::vector<ConfigOverride> overrides;
  bool json = false;  ///< the report as JSON on standard output
};

struct WorkerCommand {
  CommonOptions common;
  std::int32_t rank = -1;         ///< -1: the PS assigns one
  std::optional<std::string> ps;  ///< overrides cluster.ps
};

struct PlanCommand {
  CommonOptions common;
  std::optional<std::string> profile_path;  ///< layer times from a CSV file
  std::optional<std::string> bandwidth;     ///< "1gbit": overrides link.rate_bits_per_second
  std::optional<std::string> latency;       ///< "50us": overrides link.start_us
};

struct ProfileCommand {
  CommonOptions common;
  std::optional<std::string> out_path;  ///< default: standard output
};

struct EvaluateCommand {
  CommonOptions common;
  std::optional<std::string> model_path;  ///< default: the run's model.safetensors
};

struct SimulateCommand {
  CommonOptions common;
  VirtualCluster cluster;
  std::uint64_t evaluate_every = 0;     ///< iterations; needs cluster.train
  std::uint64_t picture_of = 0;         ///< an iteration; 0: no picture
  std::optional<std::string> svg_path;  ///< the picture as a file; needs picture_of
};

struct CompareCommand {
  CommonOptions common;
  std::string strategies = "bsp,easgd,interleaved";
  std::string admissions = "none,slots+grants";
  std::optional<std::string> periods;  ///< default: the config's
  bool simulated = false;              ///< else as processes over loopback
  VirtualCluster cluster;              ///< where simulated
};

/// The whole job on this machine: the PS and every worker as processes of their own. `program` is
/// this executable.
ExitCode run_job(const CommonOptions& options, const std::string& program);

/// One role. A PS that was told to ends when its last worker has left; a worker when training has
/// ended.
ExitCode run_ps(const CommonOptions& options);
ExitCode run_worker(const WorkerCommand& command);

ExitCode show_plan(const PlanCommand& command);
ExitCode write_profile(const ProfileCommand& command);
ExitCode evaluate_model(const EvaluateCommand& command);
ExitCode run_simulation(const SimulateCommand& command);

/// One run after another, a row each. `program` is this executable.
ExitCode compare_runs(const CompareCommand& command, const std::string& program);

}  // namespace stagger
