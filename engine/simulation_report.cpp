#include "engine/simulation_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagger {
namespace {

using Json = nlohmann::ordered_json;

Json quantiles_us(const QuantileSketch& sketch) {
  return {{"p50", sketch.quantile(0.5) * 1e6}, {"p99", sketch.quantile(0.99) * 1e6}};
}

double iteration_us(const ServerTotals& totals) {
  const auto count = static_cast<double>(totals.iteration.count());
  return count > 0 ? totals.iteration_seconds * 1e6 / count : 0.0;
}

/// Queues and losses exist where frames travel as segments.
Json port_value(const SimulatedRun& run) {
  const PortFigures& port = run.result.port;
  Json value{
      {"bytes", port.bytes},
      {"ingress_5ms_bytes",
       {{"peak", port.ingress_bytes_peak}, {"mean", port.ingress_bytes_mean}}}};
  if (!run.job.options.tcp) return value;
  const auto offered = static_cast<double>(port.segments + port.drops);
  value["offered_5ms_bytes"] = {
      {"peak", port.offered_bytes_peak}, {"mean", port.offered_bytes_mean}};
  value["queue_bytes"] = {{"peak", port.queue_bytes_peak}, {"mean", port.queue_bytes_mean}};
  value["segments"] = port.segments;
  value["drops"] = port.drops;
  value["drop_share"] = offered > 0 ? static_cast<double>(port.drops) / offered : 0.0;
  value["retransmissions"] = run.result.retransmissions;
  return value;
}

Json curve_value(const std::vector<CurvePoint>& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve) {
    points.push_back(
        {{"iteration", point.iteration.value()},
         {"virtual_seconds", point.virtual_seconds},
         {"test_accuracy", point.evaluation.accuracy},
         {"test_loss", point.evaluation.loss}});
  }
  return points;
}

/// Chunks that crossed the network, pushed or returned.
double chunks_of(const SimulatedRun& run) {
  const ServerTotals& totals = run.result.totals;
  return static_cast<double>(totals.bytes_pushed + totals.bytes_pulled) /
         static_cast<double>(run.job.config.wire.chunk_bytes);
}

Json report_value(const SimulatedRun& run) {
  const SimulationResult& result = run.result;
  const std::uint64_t scale = run.job.options.wire_bytes_per_byte;
  const double chunks = chunks_of(run);
  return {
      {"workers", run.job.config.cluster.workers},
      {"iterations", result.status.iteration.value()},
      {"virtual_seconds", result.virtual_seconds},
      {"iteration_us",
       {{"mean", iteration_us(result.totals)},
        {"p50", result.totals.iteration.quantile(0.5) * 1e6}}},
      {"predicted_iteration_us",
       run.predicted_iteration_us ? Json(*run.predicted_iteration_us) : Json()},
      {"exposed_seconds", result.totals.exposed_seconds},
      {"bytes_pushed", result.totals.bytes_pushed * scale},
      {"bytes_pulled", result.totals.bytes_pulled * scale},
      {"pushes_in_flight_max", result.status.pushes_in_flight_max},
      {"push_us", quantiles_us(result.totals.push)},
      {"ready_to_done_us", quantiles_us(result.totals.ready_to_done)},
      {"slot_lateness_us", quantiles_us(result.totals.lateness)},
      {"port", port_value(run)},
      {"test_accuracy", run.evaluation ? Json(run.evaluation->accuracy) : Json()},
      {"test_loss", run.evaluation ? Json(run.evaluation->loss) : Json()},
      {"curve", curve_value(result.curve)},
      {"wire_bytes_per_byte", scale},
      {"wall_seconds", run.wall_seconds},
      {"events", result.events},
      {"wall_us_per_chunk", chunks > 0 ? run.wall_seconds * 1e6 / chunks : 0.0},
      {"trace_hash", fmt::format("{:016x}", result.trace_hash)},
      {"parameters_sha256", run.parameters_sha256}};
}

std::string value_text(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "push_us.p99        412.5", a line each.
void append_lines(std::string& text, const std::string& prefix, const Json& value) {
  for (const auto& [key, field] : value.items()) {
    if (field.is_null() || (field.is_array() && field.empty())) continue;
    if (field.is_object()) {
      append_lines(text, prefix + key + ".", field);
    } else {
      text += fmt::format("{:<32}{}\n", prefix + key, value_text(field));
    }
  }
}

}  // namespace

std::string simulation_json(const SimulatedRun& run) {
  return report_value(run).dump(2) + "\n";
}

std::string simulation_text(const SimulatedRun& run) {
  Json report = report_value(run);
  const Json curve = report["curve"];
  report.erase("curve");
  std::string text;
  append_lines(text, "", report);
  if (curve.empty()) return text;
  text += "\n virtual s  iteration  accuracy\n";
  for (const Json& point : curve) {
    text += fmt::format(
        "{:>10.2f}  {:>9}  {:>8.4f}\n",
        point["virtual_seconds"].get<double>(),
        point["iteration"].get<std::uint64_t>(),
        point["test_accuracy"].get<double>());
  }
  return text;
}

}  // namespace stagger
