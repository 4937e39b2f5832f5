#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/job.hpp"
#include "ps/client.hpp"
#include "ps/server.hpp"

// Parses the command line, runs one command, prints an error once, and turns it into an exit code.
namespace stagger {

namespace {

ExitCode code_of(ServerFailure::Kind kind) {
  switch (kind) {
    case ServerFailure::Kind::members_missing:
      return ExitCode::members_missing;
    case ServerFailure::Kind::workers_lost:
      return ExitCode::workers_lost;
    case ServerFailure::Kind::listen_failed:
      return ExitCode::address_in_use;
    case ServerFailure::Kind::link_unknown:
      return ExitCode::failure;
  }
  return ExitCode::failure;
}

ExitCode code_of(ClientFailure::Kind kind) {
  return kind == ClientFailure::Kind::refused ? ExitCode::refused : ExitCode::ps_lost;
}

ExitCode complain(const std::exception& error, ExitCode code) {
  fmt::print(stderr, "stagger: {}\n", error.what());
  return code;
}

/// Runs a command; every failure that a user can cause becomes one line and a documented code.
template <class Command>
ExitCode guarded(Command&& command) {
  try {
    return command();
  } catch (const ConfigError& error) {
    return complain(error, ExitCode::usage);
  } catch (const DataError& error) {
    return complain(error, ExitCode::data);
  } catch (const StorageError& error) {
    return complain(error, ExitCode::storage);
  } catch (const ServerFailure& error) {
    return complain(error, code_of(error.kind));
  } catch (const ClientFailure& error) {
    return complain(error, code_of(error.kind));
  } catch (const std::exception& error) {
    return complain(error, ExitCode::failure);
  }
}

void add_common(CLI::App& command, CommonOptions& options, std::vector<std::string>& sets) {
  command.add_option("config", options.config_path, "the run's TOML file")->required();
  command.add_option("--set", sets, "override a key of the config: table.key=value (repeatable)")
      ->allow_extra_args(false);
  command.add_flag("--json", options.json, "print the report as JSON");
}

void apply_sets(CommonOptions& options, const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    if (equals == std::string::npos) {
      throw ConfigError("--set " + set + ": expected table.key=value");
    }
    options.overrides.push_back({set.substr(0, equals), set.substr(equals + 1)});
  }
}

/// The rank as the launcher of a cluster gives it.
constexpr const char* rank_variables[] = {
    "STAGGER_RANK",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "JOB_COMPLETION_INDEX",
    "RANK"};

std::int32_t rank_from_environment() {
  for (const char* name : rank_variables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    if (value == nullptr || *value == '\0') continue;
    char* end = nullptr;
    const long rank = std::strtol(value, &end, 10);
    if (*end != '\0' || rank < 0 || rank > 65535) {
      throw ConfigError(fmt::format("{}={}: a rank is a whole number from 0", name, value));
    }
    return static_cast<std::int32_t>(rank);
  }
  return -1;
}

/// The commands with their options; parse() then says which was meant.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.footer("Each command shows an example with --help. Exit codes: see README.md.");
    add_run();
    add_roles();
    add_plan();
    add_profile();
    add_evaluate();
    add_simulate();
    add_compare();
  }

  ExitCode run(int count, char** words) {
    try {
      app_.parse(count, words);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? ExitCode::success : ExitCode::usage;
    }
    return guarded([this, words] { return dispatch(words[0]); });
  }

 private:
  ExitCode dispatch(const char* program) {
    apply_sets(common_, sets_);
    if (*run_) return run_job(common_, program);
    if (*ps_) return run_ps(common_);
    if (*plan_) {
      return show_plan(
          {common_, optional(profile_path_), optional(plan_bandwidth_), optional(plan_latency_)});
    }
    if (*profile_) return write_profile({common_, optional(out_path_)});
    if (*evaluate_) return evaluate_model({common_, optional(model_path_)});
    if (*simulate_) {
      simulation_.common = common_;
      simulation_.cluster = cluster_;
      simulation_.svg_path = optional(svg_path_);
      return run_simulation(simulation_);
    }
    if (*compare_) return compare_runs(comparison(), program);
    if (rank_ < 0) rank_ = rank_from_environment();
    return run_worker({common_, rank_, optional(ps_address_)});
  }

  CompareCommand comparison() {
    comparison_.common = common_;
    comparison_.periods = optional(periods_);
    comparison_.cluster = cluster_;
    return comparison_;
  }

  static std::optional<std::string> optional(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  }

  void add_run() {
    run_ = app_.add_subcommand(
        "run", "the whole job on this machine: one PS and all workers as processes");
    add_common(*run_, common_, sets_);
    run_->footer("Example: stagger run configs/quickstart.toml --set sync.period=4");
  }

  void add_roles() {
    ps_ = app_.add_subcommand("ps", "one parameter server (with the coordinator)");
    add_common(*ps_, common_, sets_);
    ps_->footer("Example: stagger ps configs/quickstart.toml --set cluster.listen=0.0.0.0:7000");
    worker_ = app_.add_subcommand("worker", "one worker");
    add_common(*worker_, common_, sets_);
    worker_
        ->add_option(
            "--rank",
            rank_,
            "this worker's rank; else STAGGER_RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK, "
            "JOB_COMPLETION_INDEX or RANK; else the PS assigns one")
        ->check(CLI::NonNegativeNumber);
    worker_->add_option("--ps", ps_address_, "address of the PS, host:port")->envname("STAGGER_PS");
    worker_->footer("Example: stagger worker configs/quickstart.toml --ps 10.0.0.1:7000 --rank 2");
  }

  void add_plan() {
    plan_ = app_.add_subcommand(
        "plan", "groups, due table, windows, slots and predicted times of a config");
    add_common(*plan_, common_, sets_);
    plan_->add_option(
        "--profile",
        profile_path_,
        "layer times: a shipped profile, or a CSV file of name,params,bytes,t_fwd_us,t_bwd_us in "
        "forward order");
    plan_->add_option(
        "--bandwidth",
        plan_bandwidth_,
        "of the PS's link, for the prediction, such as 1gbit; default: link.rate_bits_per_second");
    plan_->add_option(
        "--latency",
        plan_latency_,
        "before a push's first byte, such as 50us; default: link.start_us");
    plan_->footer(
        "Example: stagger plan configs/quickstart.toml --set sync.period=4 --bandwidth 1gbit");
  }

  void add_profile() {
    profile_ = app_.add_subcommand(
        "profile",
        "layer times of the config's model on this machine, as plan --profile reads them");
    add_common(*profile_, common_, sets_);
    profile_->add_option("--out", out_path_, "a CSV file; default: standard output");
    profile_->footer("Example: stagger profile configs/quickstart.toml --out lenet5.csv");
  }

  void add_evaluate() {
    evaluate_ = app_.add_subcommand("evaluate", "accuracy of a saved center on the test data");
    add_common(*evaluate_, common_, sets_);
    evaluate_->add_option("--model", model_path_, "a safetensors file; default: the run's");
    evaluate_->footer(
        "Example: stagger evaluate configs/quickstart.toml --model "
        "runs/quickstart/model.safetensors");
  }

  void add_simulate() {
    simulate_ = app_.add_subcommand(
        "simulate",
        "the same run on a virtual clock and network: nothing is computed unless --train is given");
    add_common(*simulate_, common_, sets_);
    add_world(*simulate_);
    simulate_->add_option(
        "--evaluate-every",
        simulation_.evaluate_every,
        "with --train: accuracy on the way, iterations");
    simulate_->add_option(
        "--picture", simulation_.picture_of, "draw this iteration: workers down, time across");
    simulate_->add_option("--svg", svg_path_, "with --picture: into this file, too");
    simulate_->footer(
        "Example: stagger simulate configs/replay.toml --workers 64 --bandwidth 10gbit --buffer "
        "256KiB --picture 3");
  }

  void add_world(CLI::App& command) {
    command.add_option("--seed", cluster_.seed, "of the virtual world");
    command.add_option("--workers", cluster_.workers, "instead of cluster.workers");
    command.add_option(
        "--bandwidth", cluster_.bandwidth, "of the PS's link, both ways, such as 10gbit; 1gbit");
    command.add_option(
        "--reply-bandwidth", cluster_.reply_bandwidth, "of the PS's way out; as --bandwidth");
    command.add_option(
        "--worker-bandwidth", cluster_.worker_bandwidth, "of workers' links; as --bandwidth");
    command.add_option("--latency", cluster_.latency, "of every link, such as 5us; 50us");
    command.add_option(
        "--buffer",
        cluster_.buffer,
        "of switch ports, such as 256KiB: TCP segments that may be lost; without it, frames go "
        "whole and nothing is lost");
    command
        .add_option(
            "--jitter", cluster_.jitter, "computing takes up to this share longer, at random")
        ->capture_default_str();
    command.add_option("--stragglers", cluster_.stragglers, "so many workers compute slower ...");
    command.add_option("--straggler-factor", cluster_.straggler_factor, "... by this factor")
        ->capture_default_str();
    command.add_option(
        "--clock-offset", cluster_.clock_offset, "workers' clocks are wrong by up to this; 0");
    command.add_option(
        "--clock-drift-ppm",
        cluster_.clock_drift_ppm,
        "and gain or lose up to so many microseconds a second");
    command.add_option(
        "--shrink",
        cluster_.shrink,
        "keep 1/N of a replayed model in memory, as N bytes each on the wire; default: as needed");
    command.add_flag("--train", cluster_.train, "real arithmetic on the real data");
  }

  void add_compare() {
    compare_ = app_.add_subcommand(
        "compare", "strategies, periods and admissions side by side: one run each, as a table");
    add_common(*compare_, common_, sets_);
    compare_->add_option("--strategies", comparison_.strategies, "with commas")
        ->capture_default_str();
    compare_->add_option("--admissions", comparison_.admissions, "with commas")
        ->capture_default_str();
    compare_->add_option("--periods", periods_, "T, with commas; default: the config's");
    auto* simulated = compare_->add_flag(
        "--simulated", comparison_.simulated, "on a virtual clock and network, in this process");
    compare_
        ->add_flag(
            "--measured",
            measured_,
            "as processes over loopback, one run after another (the default)")
        ->excludes(simulated);
    add_world(*compare_);
    compare_->footer(
        "Example: stagger compare configs/replay.toml --strategies easgd,interleaved "
        "--periods 1,3 --simulated --bandwidth 1gbit");
  }

  CLI::App app_{"Stagger: distributed training with interleaved communication"};
  CLI::App* run_ = nullptr;
  CLI::App* ps_ = nullptr;
  CLI::App* worker_ = nullptr;
  CLI::App* plan_ = nullptr;
  CLI::App* profile_ = nullptr;
  CLI::App* evaluate_ = nullptr;
  CLI::App* simulate_ = nullptr;
  CLI::App* compare_ = nullptr;
  CommonOptions common_;
  std::vector<std::string> sets_;
  std::int32_t rank_ = -1;
  std::string ps_address_;
  std::string profile_path_;
  std::string out_path_;
  std::string plan_bandwidth_;
  std::string plan_latency_;
  std::string model_path_;
  CompareCommand comparison_;
  bool measured_ = false;  ///< as without a flag
  std::string periods_;
  VirtualCluster cluster_;
  SimulateCommand simulation_;
  std::string svg_path_;
};

}  // namespace

}  // namespace stagger

int main(int count, char** words) {
  return static_cast<int>(stagger::CommandLine().run(count, words));
}
