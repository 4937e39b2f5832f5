#include "observability/catalog.hpp"

#include <vector>

namespace stagger {

namespace {

// From a fraction of a network packet's time to a stuck peer.
const std::vector<double>& short_bounds_seconds() {
  static const std::vector<double> bounds{
      1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0};
  return bounds;
}

// From a small model's iteration to a minute-long stall.
const std::vector<double>& long_bounds_seconds() {
  static const std::vector<double> bounds{
      1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0};
  return bounds;
}

}  // namespace

std::string_view to_string(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::bad_frame:
      return "bad_frame";
    case RefusalReason::bad_message:
      return "bad_message";
    case RefusalReason::unauthorized:
      return "unauthorized";
    case RefusalReason::wrong_job:
      return "wrong_job";
    case RefusalReason::not_a_member:
      return "not_a_member";
    case RefusalReason::wrong_plan:
      return "wrong_plan";
    case RefusalReason::unknown_group:
      return "unknown_group";
    case RefusalReason::wrong_length:
      return "wrong_length";
    case RefusalReason::stale:
      return "stale";
    case RefusalReason::repeated:
      return "repeated";
    case RefusalReason::nonfinite:
      return "nonfinite";
    case RefusalReason::overloaded:
      return "overloaded";
  }
  return "bad_message";
}

WorkerMetrics::WorkerMetrics(Registry& registry)
    : iterations_total(registry.counters(
          {"iterations_total", "Minibatches that the worker has finished."}, "rank")),
      samples_total(
          registry.counters({"samples_total", "Samples that the worker has trained on."}, "rank")),
      loss(registry.gauges({"loss", "Training loss of the worker's last iteration."}, "rank")),
      iteration_seconds(registry.histograms(
          {"iteration_seconds", "Duration of one iteration of the worker."},
          "rank",
          long_bounds_seconds())),
      compute_seconds_total(registry.counters(
          {"compute_seconds_total", "Time the worker spent in forward, backward and local steps."},
          "rank")),
      exposed_seconds_total(registry.counters(
          {"exposed_seconds_total",
           "Time the worker waited for communication that no compute covered."},
          "rank")),
      slot_lateness_seconds(registry.histograms(
          {"slot_lateness_seconds", "How long after the begin of its slot a push began."},
          "rank",
          short_bounds_seconds())),
      slot_overrun_seconds(registry.histograms(
          {"slot_overrun_seconds", "How long after the end of its slot a push ended."},
          "rank",
          short_bounds_seconds())),
      connection_round_trip_seconds(registry.gauges(
          {"connection_round_trip_seconds", "Smoothed round trip time of the worker's connection."},
          "rank")),
      connection_retransmissions_total(registry.counters(
          {"connection_retransmissions_total",
           "Segments that the worker's connections sent again."},
          "rank")),
      clock_offset_seconds(registry.gauges(
          {"clock_offset_seconds", "The coordinator's clock minus the worker's."}, "rank")),
      clock_uncertainty_seconds(registry.gauges(
          {"clock_uncertainty_seconds", "How far the true clock offset may be from that known."},
          "rank")),
      worker_up(registry.gauges(
          {"worker_up", "1 while the worker is a member, 0 after it was lost or has left."},
          "rank")),
      worker_straggling(registry.gauges(
          {"worker_straggling",
           "1 while the worker's iterations take much longer than the others'."},
          "rank")),
      round_wait_seconds(registry.histograms(
          {"round_wait_seconds",
           "How long a round that was otherwise complete waited for this rank."},
          "rank",
          short_bounds_seconds())),
      nonfinite_chunks_total(registry.counters(
          {"nonfinite_chunks_total", "Chunks from the worker that held NaN or infinity."},
          "rank")) {}

void WorkerMetrics::gone(std::int64_t rank) {
  worker_up.at(rank).set(0.0);
  loss.remove(rank);
  connection_round_trip_seconds.remove(rank);
  clock_offset_seconds.remove(rank);
  clock_uncertainty_seconds.remove(rank);
  worker_straggling.remove(rank);
}

ServerMetrics::ServerMetrics(Registry& registry)
    : push_bytes_total(registry.counters(
          {"push_bytes_total", "Payload bytes of the group that workers have pushed."}, "group")),
      pull_bytes_total(registry.counters(
          {"pull_bytes_total", "Payload bytes of the group that workers have pulled."}, "group")),
      push_seconds(registry.histograms(
          {"push_seconds", "Time from the first to the last byte of a worker's push of the group."},
          "group",
          short_bounds_seconds())),
      pull_seconds(registry.histograms(
          {"pull_seconds", "Time from the end of a round to the last byte of a worker's pull."},
          "group",
          short_bounds_seconds())),
      pushes_in_flight(
          registry.gauge({"pushes_in_flight", "Pushes that are arriving at the server now."})),
      pushes_in_flight_max(registry.gauge(
          {"pushes_in_flight_max", "Most pushes that have arrived at the server at once."})),
      ingress_bytes_total(registry.counter(
          {"ingress_bytes_total", "Bytes that the server has received from workers."})),
      egress_bytes_total(
          registry.counter({"egress_bytes_total", "Bytes that the server has sent to workers."})),
      rounds_total(registry.counter({"rounds_total", "Rounds that have closed."})),
      rounds_incomplete_total(registry.counter(
          {"rounds_incomplete_total", "Rounds that closed without every member."})),
      turns_total(registry.counter({"turns_total", "Turns to push that were handed out."})),
      turns_lost_total(registry.counter(
          {"turns_lost_total", "Turns that were taken back from a worker that sent nothing."})),
      slot_utilization_ratio(registry.gauge(
          {"slot_utilization_ratio",
           "Share of the slots' time in which bytes arrived, over the last report."})),
      period_iterations(registry.gauge(
          {"period_iterations",
           "Iterations between two exchanges of a group in the plan in force."})),
      plan_version(registry.gauge({"plan_version", "Version of the plan in force."})),
      link_rate_bytes_per_second(registry.gauge(
          {"link_rate_bytes_per_second",
           "Rate of the parameter server's link that plans go by; 0 while it is not known."})),
      link_start_seconds(registry.gauge(
          {"link_start_seconds", "What plans take a push to cost before its first byte."})),
      refused_frames_total(registry.counters(
          {"refused_frames_total", "Frames that were refused, by reason."}, "reason")) {
  for (std::uint8_t code = 0; code <= static_cast<std::uint8_t>(RefusalReason::overloaded);
       ++code) {
    // Present from the start at 0, so that the first refusal is an increase that rate() sees.
    refused_frames_total.at(to_string(static_cast<RefusalReason>(code))).add(0.0);
  }
}

}  // namespace stagger
