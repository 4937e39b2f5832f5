#include "engine/comparison.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagger {

namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

/// A column is a key in JSON, a head and digits in the table, and a number of a row. Speed is told
/// against the first row that ran.
struct Column {
  const char* key;
  const char* head;
  int digits;
  double unit;  ///< what the table divides by
  Value (*value)(const ComparedRow& row, const ComparedRow& first);
};

Value iteration_us(const ComparedRow& row) {
  return row.figures && row.figures->iteration_us > 0.0 ? Value(row.figures->iteration_us)
                                                        : std::nullopt;
}

Value ratio(const Value& one, const Value& other) {
  return one && other && *other > 0.0 ? Value(*one / *other) : std::nullopt;
}

template <double RunFigures::* member>
Value figure(const ComparedRow& row, const ComparedRow& /*first*/) {
  return row.figures ? Value((*row.figures).*member) : std::nullopt;
}

template <std::optional<double> RunFigures::* member>
Value known_figure(const ComparedRow& row, const ComparedRow& /*first*/) {
  return row.figures ? (*row.figures).*member : std::nullopt;
}

constexpr double one = 1.0;
constexpr double thousand = 1e3;
constexpr double million = 1e6;

constexpr Column columns[] = {
    {"iteration_us",
     "iter ms",
     2,
     thousand,
     [](const ComparedRow& row, const ComparedRow&) {
       return iteration_us(row);
     }},
    {"speed_up",
     "speed-up",
     2,
     one,
     [](const ComparedRow& row, const ComparedRow& first) {
       return ratio(iteration_us(first), iteration_us(row));
     }},
    {"bytes_pushed", "pushed MB", 1, million, figure<&RunFigures::bytes_pushed>},
    {"pushes_in_flight_max", "in flight", 0, one, figure<&RunFigures::pushes_in_flight_max>},
    {"push_p50_us", "push p50 ms", 2, thousand, figure<&RunFigures::push_p50_us>},
    {"push_p99_us", "push p99 ms", 2, thousand, figure<&RunFigures::push_p99_us>},
    {"exposed_seconds", "exposed s", 2, one, figure<&RunFigures::exposed_seconds>},
    {"drops", "drops", 0, one, known_figure<&RunFigures::drops>},
    {"retransmissions", "resent", 0, one, known_figure<&RunFigures::retransmissions>},
    {"ingress_peak_bytes",
     "5 ms peak KB",
     1,
     thousand,
     known_figure<&RunFigures::ingress_peak_bytes>},
    {"ingress_mean_bytes",
     "5 ms mean KB",
     1,
     thousand,
     known_figure<&RunFigures::ingress_mean_bytes>},
    {"predicted_iteration_us",
     "predicted ms",
     2,
     thousand,
     [](const ComparedRow& row, const ComparedRow&) {
       return row.predicted_iteration_us;
     }},
    {"predicted_per_measured",
     "pred/meas",
     2,
     one,
     [](const ComparedRow& row, const ComparedRow&) {
       return ratio(row.predicted_iteration_us, iteration_us(row));
     }},
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

template <class Parsed>
Parsed required(
    std::optional<Parsed> parsed,
    std::string_view flag,
    std::string_view text,
    std::string_view expected) {
  if (parsed) return *parsed;
  throw ConfigError(fmt::format("{} \"{}\": expected {}", flag, text, expected));
}

std::optional<std::uint32_t> parse_period(std::string_view text) {
  constexpr std::uint32_t period_max = 65536;
  std::uint32_t period = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, period);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return period >= 1 && period <= period_max ? std::optional(period) : std::nullopt;
}

std::string label(const Combination& combination) {
  return fmt::format(
      "{}, T={}, {}",
      to_string(combination.strategy),
      combination.period,
      to_string(combination.admission));
}

std::string cell(const Column& column, const Value& value) {
  return value ? fmt::format("{:.{}f}", *value / column.unit, column.digits) : "-";
}

/// The first one that ran.
const ComparedRow& first_run(std::span<const ComparedRow> rows) {
  const auto ran = [](const ComparedRow& row) {
    return row.figures.has_value();
  };
  const auto found = std::ranges::find_if(rows, ran);
  return found == rows.end() ? rows.front() : *found;
}

Json row_value(const ComparedRow& row, const ComparedRow& first) {
  Json value{
      {"strategy", to_string(row.combination.strategy)},
      {"period", row.combination.period},
      {"admission", to_string(row.combination.admission)},
      {"why_not", row.figures ? Json(nullptr) : Json(row.why_not)}};
  for (const Column& column : columns) {
    const Value number = column.value(row, first);
    value[column.key] = number ? Json(*number) : Json(nullptr);
  }
  return value;
}

}  // namespace

std::vector<Combination> combinations(
    std::string_view strategies, std::string_view periods, std::string_view admissions) {
  std::vector<Combination> all;
  for (const auto strategy_text : split(strategies)) {
    const auto strategy = required(
        parse_strategy(strategy_text),
        "--strategies",
        strategy_text,
        "interleaved, easgd, local_sgd, diloco or bsp");
    for (const auto period_text : split(periods)) {
      const auto period =
          required(parse_period(period_text), "--periods", period_text, "a whole number from 1");
      for (const auto admission_text : split(admissions)) {
        const auto admission = required(
            parse_admission(admission_text),
            "--admissions",
            admission_text,
            "none, slots, grants or slots+grants");
        const Combination combination{
            .strategy = strategy,
            .period = strategy == Strategy::bsp ? 1 : period,
            .admission = admission};
        if (std::ranges::find(all, combination) == all.end()) all.push_back(combination);
      }
    }
  }
  return all;
}

std::string job_name(const Combination& combination) {
  std::string name = fmt::format(
      "{}-T{}-{}",
      to_string(combination.strategy),
      combination.period,
      to_string(combination.admission));
  std::ranges::replace(name, '+', '-');
  return name;
}

std::vector<ConfigOverride> overrides_of(const Combination& combination) {
  return {
      {.key = "sync.strategy", .value = std::string(to_string(combination.strategy))},
      {.key = "sync.period", .value = std::to_string(combination.period)},
      {.key = "slots.admission", .value = std::string(to_string(combination.admission))}};
}

RunFigures figures_of(const ServerTotals& totals, const ServerStatus& status) {
  const auto iterations = static_cast<double>(totals.iteration.count());
  return {
      .iteration_us = iterations > 0.0 ? totals.iteration_seconds * million / iterations : 0.0,
      .bytes_pushed = static_cast<double>(totals.bytes_pushed),
      .pushes_in_flight_max = static_cast<double>(status.pushes_in_flight_max),
      .push_p50_us = totals.push.quantile(0.5) * million,
      .push_p99_us = totals.push.quantile(0.99) * million,
      .exposed_seconds = totals.exposed_seconds};
}

RunFigures figures_of(const std::string& report_json) {
  const Json report = Json::parse(report_json);
  return {
      .iteration_us = report.at("iteration_us").at("mean").get<double>(),
      .bytes_pushed = report.at("bytes_pushed").get<double>(),
      .pushes_in_flight_max = report.at("pushes_in_flight_max").get<double>(),
      .push_p50_us = report.at("push_us").at("p50").get<double>(),
      .push_p99_us = report.at("push_us").at("p99").get<double>(),
      .exposed_seconds = report.at("exposed_seconds").get<double>()};
}

std::string comparison_json(std::span<const ComparedRow> rows) {
  Json list = Json::array();
  for (const ComparedRow& row : rows)
    list.push_back(row_value(row, first_run(rows)));
  return list.dump(2) + "\n";
}

std::string comparison_text(std::span<const ComparedRow> rows) {
  constexpr std::size_t label_width = 30;
  std::string text = fmt::format("{:<{}}", "run", label_width);
  for (const Column& column : columns)
    text += fmt::format("  {:>10}", column.head);
  text += "\n";
  for (const ComparedRow& row : rows) {
    text += fmt::format("{:<{}}", label(row.combination), label_width);
    if (!row.figures) {
      text += fmt::format("  {}\n", row.why_not);
      continue;
    }
    for (const Column& column : columns) {
      text += fmt::format(
          "  {:>{}}",
          cell(column, column.value(row, first_run(rows))),
          std::max(std::string_view(column.head).size(), std::size_t{10}));
    }
    text += "\n";
  }
  return text;
}

}  // namespace stagger
