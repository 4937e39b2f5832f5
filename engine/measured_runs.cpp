#include "engine/measured_runs.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/job.hpp"
#include "engine/planned_config.hpp"

namespace stagger {

namespace {

constexpr const char* table_name = "compare.json";

std::vector<ConfigOverride> row_overrides(
    const CommonOptions& options, const Combination& combination) {
  auto overrides = options.overrides;
  for (auto& override : overrides_of(combination))
    overrides.push_back(std::move(override));
  return overrides;
}

}  // namespace

Result<Config> config_of(const CommonOptions& options, const Combination& combination) {
  try {
    return load_config(options.config_path, row_overrides(options, combination));
  } catch (const ConfigError& error) {
    return Error{.code = Errc::refused, .detail = error.what()};
  }
}

std::optional<double> predicted_iteration_us(
    const Config& config, const std::vector<LayerProfile>& layers) {
  if (!config.link.rate_bits_per_second) return std::nullopt;
  const PlannedConfig planned = plan_config(config, layers);
  if (!planned.outlook.prediction) return std::nullopt;
  return to_microseconds(planned.outlook.prediction->iteration);
}

MeasuredRuns::MeasuredRuns(RealHost& real, Options options, RunFiles files)
    : real_(real), options_(std::move(options)), files_(std::move(files)) {}

Task<void> MeasuredRuns::run(std::span<const Combination> combinations) {
  files_.archive_earlier(table_name);
  files_.write(table_name, comparison_json(rows_));
  for (const Combination& combination : combinations) {
    rows_.push_back(co_await measure(combination));
    files_.write(table_name, comparison_json(rows_));
  }
}

void MeasuredRuns::stop() {
  stopping_ = true;
  if (process_) process_->signal(SIGTERM);
}

Task<ComparedRow> MeasuredRuns::measure(Combination combination) {
  ComparedRow row{.combination = combination, .why_not = "not run: stopped before"};
  if (stopping_) co_return row;
  const auto config = config_of(options_.common, combination);
  if (!config) {
    row.why_not = "refused: " + config.error().detail;
    co_return row;
  }
  if (!options_.common.json) fmt::print(stderr, "compare: {}\n", job_name(combination));
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
    row.predicted_iteration_us = predicted_iteration_us(*config, options_.layers);
  }
  co_return row;
}

std::unique_ptr<Process> MeasuredRuns::start(const Combination& combination) const {
  const std::string name = job_name(combination);
  std::vector<std::string> words{options_.program, "run", options_.common.config_path, "--json"};
  auto overrides = row_overrides(options_.common, combination);
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

void MeasuredRuns::read_report(ComparedRow& row) {
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

}  // namespace stagger
