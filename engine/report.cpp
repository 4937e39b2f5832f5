#include "engine/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagger {

namespace {

using Json = nlohmann::ordered_json;

Json period_changes(const Server& server) {
  Json changes = Json::array();
  const auto plans = server.plans().plans();
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].policy.period == plans[i - 1].policy.period) continue;
    changes.push_back(
        {{"iteration", plans[i].first_iteration.value()}, {"period", plans[i].policy.period}});
  }
  return changes;
}

/// From when on plans had other slots under the same T.
Json slot_changes(const Server& server) {
  Json changes = Json::array();
  const auto plans = server.plans().plans();
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].policy.period != plans[i - 1].policy.period) continue;
    changes.push_back(plans[i].first_iteration.value());
  }
  return changes;
}

/// What plans at the start went by; null where the link was not known, nor needed.
Json link_value(const Server& server) {
  const auto& link = server.link();
  if (!link) return nullptr;
  return {
      {"rate_bits_per_second", std::round(rate_bits_per_second(link->cost))},
      {"start_us", to_microseconds(link->cost.start)},
      {"measured", link->measured}};
}

/// Why T is what it is; null where the config says it.
Json period_reason(const Server& server) {
  const auto& choice = server.period_choice();
  return choice ? Json(choice->reason) : Json(nullptr);
}

Json iterations_due(const Plan& plan, GroupId group) {
  Json iterations = Json::array();
  for (std::uint64_t j = 1; j <= plan.policy.period; ++j) {
    if (due(plan, group, Iteration(j))) iterations.push_back(j);
  }
  return iterations;
}

std::string layers_text(const LayerRange& range, std::span<const LayerProfile> layers) {
  const std::string& first = layers[range.begin].name;
  if (range.end - range.begin == 1) return first;
  return first + ".." + layers[range.end - 1].name;
}

Json plan_value(const Plan& plan, std::span<const LayerProfile> layers) {
  Json groups = Json::array();
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const PlannedGroup& group = plan.groups[g];
    Json names = Json::array();
    for (std::size_t i = group.range.layers.begin; i < group.range.layers.end; ++i) {
      names.push_back(layers[i].name);
    }
    groups.push_back(
        {{"index", g},
         {"layers", names},
         {"bytes", group.range.bytes},
         {"due", iterations_due(plan, GroupId(static_cast<std::uint32_t>(g)))},
         {"cur_us", to_microseconds(group.slot.current)},
         {"window_us", to_microseconds(group.slot.window)},
         {"slot_us", to_microseconds(group.slot.slot)}});
  }
  return {
      {"version", plan.version.value()},
      {"first_iteration", plan.first_iteration.value()},
      {"strategy", to_string(plan.policy.strategy)},
      {"rule", to_string(plan.policy.rule)},
      {"period", plan.policy.period},
      {"workers", plan.policy.workers},
      {"alpha", plan.policy.alpha},
      {"beta", plan.policy.beta},
      {"outer_momentum", plan.policy.outer_momentum},
      {"admission", to_string(plan.admission)},
      {"groups", groups}};
}

Json quantiles_us(const QuantileSketch& sketch) {
  return {
      {"count", sketch.count()},
      {"p50", sketch.quantile(0.5) * 1e6},
      {"p99", sketch.quantile(0.99) * 1e6}};
}

Json iteration_value(const ServerTotals& totals) {
  const auto count = static_cast<double>(totals.iteration.count());
  return {
      {"count", totals.iteration.count()},
      {"p50", totals.iteration.quantile(0.5) * 1e6},
      {"mean", count > 0.0 ? totals.iteration_seconds * 1e6 / count : 0.0}};
}

/// A bar of `width` cells from `begin` to `end` of `total`.
std::string bar(double begin, double end, double total, std::size_t width) {
  const auto cell = [&](double at) {
    const double share = total > 0.0 ? std::clamp(at / total, 0.0, 1.0) : 0.0;
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
  };
  const std::size_t first = std::min(cell(begin), width - 1);
  const std::size_t last = std::max(cell(end), first + 1);
  return std::string(first, '.') + std::string(last - first, '#') + std::string(width - last, '.');
}

}  // namespace

std::string report_json(const RunFacts& facts) {
  const Server& server = *facts.server;
  const ServerTotals& totals = server.totals();
  const ServerStatus status = server.status();
  const SyncPolicy& policy = server.plans().at(Iteration(1)).policy;
  const double wall = to_seconds(totals.ended_at - totals.started_at);
  Json lost = Json::array();
  for (const WorkerStatus& worker : status.workers) {
    if (worker.member.state == Membership::State::left) continue;
    lost.push_back(
        {{"rank", worker.rank.value()},
         {"last_iteration", worker.progress.iteration.value()},
         {"reason", worker.member.reason}});
  }
  const Json report{
      {"job", server.options().job},
      {"strategy", to_string(policy.strategy)},
      {"rule", to_string(policy.rule)},
      {"period", policy.period},
      {"period_reason", period_reason(server)},
      {"alpha", policy.alpha},
      {"beta", policy.beta},
      {"outer_momentum", policy.outer_momentum},
      {"effective_learning_rate_share", facts.effective_learning_rate_share},
      {"admission", to_string(server.plans().at(Iteration(1)).admission)},
      {"groups", server.plans().at(Iteration(1)).groups.size()},
      {"workers", policy.workers},
      {"workers_lost", lost},
      {"iterations", status.iteration.value()},
      {"samples", status.samples},
      {"train_loss", facts.evaluation ? Json(status.loss) : Json()},
      {"test_accuracy", facts.evaluation ? Json(facts.evaluation->accuracy) : Json()},
      {"test_loss", facts.evaluation ? Json(facts.evaluation->loss) : Json()},
      {"test_samples", facts.evaluation ? facts.evaluation->samples : 0},
      {"samples_per_second", wall > 0.0 ? static_cast<double>(status.samples) / wall : 0.0},
      {"wall_seconds", wall},
      {"bytes_pushed", totals.bytes_pushed},
      {"bytes_pulled", totals.bytes_pulled},
      {"rounds", status.rounds_closed},
      {"pushes_in_flight_max", status.pushes_in_flight_max},
      {"exposed_seconds", totals.exposed_seconds},
      {"compute_seconds", totals.compute_seconds},
      {"slot_lateness_us", quantiles_us(totals.lateness)},
      {"push_us", quantiles_us(totals.push)},
      {"ready_to_done_us", quantiles_us(totals.ready_to_done)},
      {"iteration_us", iteration_value(totals)},
      {"clock_uncertainty_us", to_microseconds(totals.clock_uncertainty)},
      {"period_changes", period_changes(server)},
      {"slot_changes", slot_changes(server)},
      {"link", link_value(server)},
      {"parameters_sha256", facts.parameters_sha256}};
  return report.dump(2) + "\n";
}

namespace {

std::string accuracy_text(const Json& report) {
  if (report["test_accuracy"].is_null()) return "";
  return fmt::format(
      "accuracy        {:.2f} % of {} test samples, loss {:.4f}\n",
      100.0 * report["test_accuracy"].get<double>(),
      report["test_samples"].get<std::uint64_t>(),
      report["test_loss"].get<double>());
}

}  // namespace

std::string report_text(const std::string& report_json) {
  const Json report = Json::parse(report_json);
  std::string text = fmt::format(
      "strategy        {} ({}, T={}, {} workers, admission {})\n"
      "{}training        {} iterations, {} samples in {:.1f} s: {:.0f} samples/s\n"
      "traffic         {:.1f} MB pushed, {:.1f} MB pulled, at most {} pushes in flight\n"
      "waits           {:.2f} s exposed beside {:.1f} s of compute, all workers together\n"
      "slots           start late by {:.0f} us (p50), {:.0f} us (p99)\n"
      "pushes          {:.0f} us (p50), {:.0f} us (p99); from ready to received {:.0f} us, {:.0f} "
      "us\n"
      "iterations      {:.0f} us (p50), {:.0f} us (mean)\n"
      "parameters      sha256 {}\n",
      report["strategy"].get<std::string>(),
      report["rule"].get<std::string>(),
      report["period"].get<std::uint32_t>(),
      report["workers"].get<std::uint32_t>(),
      report["admission"].get<std::string>(),
      accuracy_text(report),
      report["iterations"].get<std::uint64_t>(),
      report["samples"].get<std::uint64_t>(),
      report["wall_seconds"].get<double>(),
      report["samples_per_second"].get<double>(),
      report["bytes_pushed"].get<double>() / 1e6,
      report["bytes_pulled"].get<double>() / 1e6,
      report["pushes_in_flight_max"].get<std::uint32_t>(),
      report["exposed_seconds"].get<double>(),
      report["compute_seconds"].get<double>(),
      report["slot_lateness_us"]["p50"].get<double>(),
      report["slot_lateness_us"]["p99"].get<double>(),
      report["push_us"]["p50"].get<double>(),
      report["push_us"]["p99"].get<double>(),
      report["ready_to_done_us"]["p50"].get<double>(),
      report["ready_to_done_us"]["p99"].get<double>(),
      report["iteration_us"]["p50"].get<double>(),
      report["iteration_us"]["mean"].get<double>(),
      report["parameters_sha256"].get<std::string>());
  if (report["period_reason"].is_string()) {
    text += fmt::format("period          {}\n", report["period_reason"].get<std::string>());
  }
  for (const Json& lost : report["workers_lost"]) {
    text += fmt::format(
        "lost            rank {} after iteration {}: {}\n",
        lost["rank"].get<std::uint32_t>(),
        lost["last_iteration"].get<std::uint64_t>(),
        lost["reason"].get<std::string>());
  }
  return text;
}

std::string plan_json(
    const Plan& plan, std::span<const LayerProfile> layers, const Outlook* outlook) {
  Json value = plan_value(plan, layers);
  if (outlook != nullptr) value["prediction"] = prediction_value(*outlook, plan);
  return value.dump(2) + "\n";
}

std::string plan_text(
    const Plan& plan, std::span<const LayerProfile> layers, const Outlook* outlook) {
  constexpr std::size_t width = 40;
  double total = 0.0;
  for (const PlannedGroup& group : plan.groups) {
    total = std::max(total, to_microseconds(group.slot.current + group.slot.window));
  }
  std::string text = fmt::format(
      "{}: T={}, {} workers, alpha={:.4g}, beta={:.4g}, {} groups (0 is the output side), "
      "admission {}\n\n"
      "{:>5}  {:>10}  {:>10}  {:>10}  {:>10}  {:<12}  {:<{}}  layers\n",
      to_string(plan.policy.strategy),
      plan.policy.period,
      plan.policy.workers,
      plan.policy.alpha,
      plan.policy.beta,
      plan.groups.size(),
      to_string(plan.admission),
      "group",
      "bytes",
      "ready_us",
      "window_us",
      "slot_us",
      "due",
      "window in backward and next forward",
      width);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const PlannedGroup& group = plan.groups[g];
    const double begin = to_microseconds(group.slot.current);
    const double window = to_microseconds(group.slot.window);
    const Iteration first = next_due(plan, GroupId(static_cast<std::uint32_t>(g)), Iteration(1));
    text += fmt::format(
        "{:>5}  {:>10}  {:>10.1f}  {:>10.1f}  {:>10.1f}  {:<12}  {}  {}\n",
        g,
        group.range.bytes,
        begin,
        window,
        to_microseconds(group.slot.slot),
        fmt::format("{}+{}k", first.value(), plan.policy.period),
        bar(begin, begin + window, total, width),
        layers_text(group.range.layers, layers));
  }
  if (outlook != nullptr) text += "\n" + prediction_text(*outlook, plan);
  return text;
}

std::string status_json(const Server& server, TimePoint now) {
  const ServerStatus status = server.status();
  Json workers = Json::array();
  for (const WorkerStatus& worker : status.workers) {
    workers.push_back(
        {{"rank", worker.rank.value()},
         {"state", to_string(worker.member.state)},
         {"address", worker.member.address},
         {"iteration", worker.progress.iteration.value()},
         {"loss", worker.progress.loss},
         {"reason", worker.member.reason}});
  }
  Json value{
      {"job", server.options().job},
      {"state", status.started ? "training" : "waiting"},
      {"iteration", status.iteration.value()},
      {"last_iteration", status.last_iteration.value()},
      {"loss", status.loss},
      {"samples", status.samples},
      {"pushes_in_flight", status.pushes_in_flight},
      {"pushes_in_flight_max", status.pushes_in_flight_max},
      {"rounds", status.rounds_closed}};
  if (status.started) {
    const Plan& plan = server.plans().latest();
    value["seconds"] = to_seconds(now - server.totals().started_at);
    value["period"] = plan.policy.period;
    value["plan_version"] = plan.version.value();
    value["period_changes"] = period_changes(server);
  }
  value["workers"] = workers;
  return value.dump(2) + "\n";
}

std::string period_json(const Server& server) {
  const Plan& plan = server.plans().latest();
  const Json value{
      {"period", plan.policy.period},
      {"iteration", plan.first_iteration.value()},
      {"plan_version", plan.version.value()},
      {"auto", server.period_follows()}};
  return value.dump() + "\n";
}

}  // namespace stagger
