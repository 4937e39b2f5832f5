#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.hpp"
#include "ps/server.hpp"

/// Strategies, periods and admissions side by side, for people and programs: what
/// `stagger compare` runs and prints. Pure.
namespace stagger {

struct Combination {
  Strategy strategy = Strategy::interleaved;
  std::uint32_t period = 1;
  Admission admission = Admission::none;

  bool operator==(const Combination&) const = default;
};

/// All of these, lists with commas, in their order, admissions turning fastest. bsp has period 1,
/// so it comes once however many periods there are. Throws ConfigError, which names the flag.
std::vector<Combination> combinations(
    std::string_view strategies, std::string_view periods, std::string_view admissions);

/// "easgd-T3-slots-grants": of a job and its files.
std::string job_name(const Combination& combination);

/// What turns a config into the combination's.
std::vector<ConfigOverride> overrides_of(const Combination& combination);

/// What a run says of itself.
struct RunFigures {
  double iteration_us = 0.0;  ///< mean, after iteration 1
  double bytes_pushed = 0.0;
  double pushes_in_flight_max = 0.0;
  double push_p50_us = 0.0;
  double push_p99_us = 0.0;
  double exposed_seconds = 0.0;  ///< all workers together
  // At the port of the PS; nothing where nobody looked.
  std::optional<double> drops = std::nullopt;
  std::optional<double> retransmissions = std::nullopt;
  std::optional<double> ingress_peak_bytes = std::nullopt;  ///< in the fullest 5 ms
  std::optional<double> ingress_mean_bytes = std::nullopt;  ///< in 5 ms
};

RunFigures figures_of(const ServerTotals& totals, const ServerStatus& status);

/// From `report.json`. REQUIRES one that this program wrote.
RunFigures figures_of(const std::string& report_json);

struct ComparedRow {
  Combination combination;
  std::optional<RunFigures> figures = std::nullopt;
  std::optional<double> predicted_iteration_us = std::nullopt;  ///< where the link is known
  std::string why_not;  ///< without figures: one line for people
};

/// A list of rows: strategy, period, admission, why_not (null where there are figures), and every
/// column of the table, null where it is not known.
std::string comparison_json(std::span<const ComparedRow> rows);

std::string comparison_text(std::span<const ComparedRow> rows);

}  // namespace stagger
