#include <csignal>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/comparison.hpp"
#include "engine/job.hpp"
#include "engine/measured_profile.hpp"
#include "engine/planned_config.hpp"
#include "engine/role.hpp"
#include "engine/run_files.hpp"
#include "engine/simulation.hpp"
#include "engine/virtual_cluster.hpp"
#include "engine/workload.hpp"
#include "net/real/process.hpp"

namespace stagger {

namespace {

std::vector<ConfigOverride> row_overrides(
    const CommonOptions& options, const Combination& combination) {
  auto overrides = options.overrides;
  for (auto& override : overrides_of(combination))
    overrides.push_back(std::move(override));
  return overrides;
}

/// The combination's config, or why there is none.
Result<Config> row_config(const CommonOptions& options, const Combination& combination) {
  try {
    return load_config(options.config_path, row_overrides(options, combination));
  } catch (const ConfigError& error) {
    return Error{.code = Errc::refused, .detail = error.what()};
  }
}

/// What the plan says of an iteration; nothing while the link is not known.
std::optional<double> predicted_us(const Config& config, const std::vector<LayerProfile>& layers) {
  if (!config.link.rate_bits_per_second) return std::nullopt;
  const PlannedConfig planned = plan_config(config, layers);
  if (!planned.outlook.prediction) return std::nullopt;
  return to_microseconds(planned.outlook.prediction->iteration);
}

/// The rows, one after another, as `stagger run` over loopback.
class MeasuredRuns {
 public:
  /// `layers`: for predictions; empty where the link is not known.
  MeasuredRuns(
      RealHost& real,
      std::string program,
      CommonOptions options,
      RunFiles files,
      std::vector<LayerProfile> layers)
      : real_(real),
        program_(std::move(program)),
        options_(std::move(options)),
        files_(std::move(files)),
        layers_(std::move(layers)) {}

  Task<void> run(std::span<const Combination> combinations) {
    files_.archive_earlier(table_name);
    files_.write(table_name, comparison_json(rows_));
    for (const Combination& combination : combinations) {
      rows_.push_back(co_await measure(combination));
      files_.write(table_name, comparison_json(rows_));
    }
  }

  /// Ends the run that is under way, and begins no other.
  void stop() {
    stopping_ = true;
    if (process_) process_->signal(SIGTERM);
  }

  const std::vector<ComparedRow>& rows() const { return rows_; }

  /// A run that should have ended well did not.
  bool failed() const { return failed_; }

 private:
  static constexpr const char* table_name = "compare.json";

  Task<ComparedRow> measure(Combination combination) {
    ComparedRow row{.combination = combination, .why_not = "not run: stopped before"};
    if (stopping_) co_return row;
    const auto config = row_config(options_, combination);
    if (!config) {
      row.why_not = "refused: " + config.error().detail;
      co_return row;
    }
    if (!options_.json) fmt::print(stderr, "compare: {}\n", job_name(combination));
    process_ = start(combination);
    const int code = co_await process_->wait();
    process_.reset();
    if (stopping_) {
      row.why_not = "stopped";
    } else if (code != 0) {
      failed_ = true;
      row.why_not =
          fmt::format("ended with {}: {}", code, files_.last_line(job_name(combination) + ".log"));
    } else {
      read_report(row);
      row.predicted_iteration_us = predicted_us(*config, layers_);
    }
    co_return row;
  }

  std::unique_ptr<Process> start(const Combination& combination) const {
    const std::string name = job_name(combination);
    std::vector<std::string> words{program_, "run", options_.config_path, "--json"};
    auto overrides = row_overrides(options_, combination);
    overrides.push_back({.key = "job.directory", .value = files_.path("runs")});
    overrides.push_back({.key = "job.name", .value = name});
    for (const ConfigOverride& override : overrides) {
      words.emplace_back("--set");
      words.push_back(override.key + "=" + override.value);
    }
    auto process = Process::start(
        real_.context(),
        {.argv = std::move(words),
         .environment = {},
         .output_path = files_.path(name + ".log"),
         .share_output = false});
    if (!process) throw std::runtime_error(describe(process.error()));
    return std::move(*process);
  }

  void read_report(ComparedRow& row) {
    const std::string path =
        files_.path(fmt::format("runs/{}/report.json", job_name(row.combination)));
    const auto bytes = real_.host().storage.read(path);
    if (!bytes) throw StorageError(describe(bytes.error()));
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (!nlohmann::json::parse(text).at("workers_lost").empty()) {
      failed_ = true;
      row.why_not = fmt::format("workers were lost: {}", path);
      return;
    }
    row.figures = figures_of(text);
  }

  RealHost& real_;
  std::string program_;
  CommonOptions options_;
  RunFiles files_;
  std::vector<LayerProfile> layers_;
  std::vector<ComparedRow> rows_;
  std::unique_ptr<Process> process_;  ///< under way
  bool stopping_ = false;
  bool failed_ = false;
};

/// The bytes of a shrunk model count as those of the whole one.
void add_port(
    RunFigures& figures, const SimulationResult& result, const SimulationOptions& options) {
  figures.bytes_pushed *= static_cast<double>(options.wire_bytes_per_byte);
  figures.ingress_peak_bytes = result.port.ingress_bytes_peak;
  figures.ingress_mean_bytes = result.port.ingress_bytes_mean;
  if (!options.tcp) return;
  figures.drops = static_cast<double>(result.port.drops);
  figures.retransmissions = static_cast<double>(result.retransmissions);
}

ComparedRow simulate_row(
    const CompareCommand& command, const Storage& storage, const Combination& combination) {
  ComparedRow row{.combination = combination, .why_not = {}};
  const auto config = row_config(command.common, combination);
  if (!config) {
    row.why_not = "refused: " + config.error().detail;
    return row;
  }
  const VirtualJob job = make_virtual_job(storage, *config, command.cluster);
  const SimulationResult result = simulate(job.config, *job.workload, job.options);
  row.figures = figures_of(result.totals, result.status);
  add_port(*row.figures, result, job.options);
  row.predicted_iteration_us = predicted_us(job.full, job.layers);
  return row;
}

std::vector<Combination> combinations_of(const CompareCommand& command, const Config& config) {
  constexpr std::uint32_t period_default = 3;
  const std::string periods =
      command.periods.value_or(std::to_string(config.sync.period.value_or(period_default)));
  return combinations(command.strategies, periods, command.admissions);
}

void print_table(const CommonOptions& options, std::span<const ComparedRow> rows) {
  fmt::print("{}", options.json ? comparison_json(rows) : comparison_text(rows));
}

ExitCode compare_simulated(
    const CompareCommand& command, const Config& config, std::span<const Combination> all) {
  Role role("compare", config.job.seed);
  std::vector<ComparedRow> rows;
  for (const Combination& combination : all)
    rows.push_back(simulate_row(command, role.host().storage, combination));
  print_table(command.common, rows);
  return ExitCode::success;
}

std::vector<LayerProfile> measured_layers(const Config& config) {
  if (!config.link.rate_bits_per_second) return {};
  Role role("profile", config.job.seed);
  return profile_of(role, config);
}

ExitCode compare_measured(
    const CompareCommand& command,
    const Config& config,
    std::span<const Combination> all,
    const std::string& program) {
  auto layers = measured_layers(config);
  Role role("compare", config.job.seed);
  // A mistake in the data shows here, once, before anything is written.
  static_cast<void>(load_workload(role.host().storage, config, DataNeed::train_and_test));
  const std::string directory = run_directory(config) + "-compare";
  MeasuredRuns runs(
      role.real(),
      program,
      command.common,
      RunFiles(role.host().storage, directory),
      std::move(layers));
  role.run(runs.run(all), [&runs] { runs.stop(); });
  print_table(command.common, runs.rows());
  if (!command.common.json) fmt::print("runs and logs in {}/\n", directory);
  return runs.failed() ? ExitCode::failure : ExitCode::success;
}

}  // namespace

ExitCode compare_runs(const CompareCommand& command, const std::string& program) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  const auto all = combinations_of(command, config);
  return command.simulated ? compare_simulated(command, config, all)
                           : compare_measured(command, config, all, program);
}

}  // namespace stagger
