#pragma once

#include <cstdint>
#include <string_view>

#include "observability/metrics.hpp"

/// Every metric of the engine, once: its field here, its name, unit and help in catalog.cpp.
namespace stagger {

/// Why a frame or a hello was refused: the closed set of `stagger_refused_frames_total{reason}`.
enum class RefusalReason : std::uint8_t {
  bad_frame,      ///< no frame of ours, or over the limits
  bad_message,    ///< a frame that is no message
  unauthorized,   ///< wrong credentials
  wrong_job,      ///< another job, protocol version, world size or schema
  not_a_member,   ///< a rank that is unknown, taken or dismissed
  wrong_plan,     ///< a plan version that is not in force
  unknown_group,  ///< a group or chunk that the plan does not have
  wrong_length,   ///< a payload that does not fit its chunk
  stale,          ///< a round that is closed
  repeated,       ///< applied already
  nonfinite,      ///< NaN or infinity in a push
  overloaded,     ///< a limit of ours is reached
};

std::string_view to_string(RefusalReason reason);

/// One value per rank. A worker fills its own; the coordinator fills those of all ranks from their
/// reports.
struct WorkerMetrics {
  explicit WorkerMetrics(Registry& registry);

  Family<Counter> iterations_total;
  Family<Counter> samples_total;
  Family<Gauge> loss;
  Family<Histogram> iteration_seconds;
  Family<Counter> compute_seconds_total;
  Family<Counter> exposed_seconds_total;
  Family<Histogram> slot_lateness_seconds;
  Family<Histogram> slot_overrun_seconds;
  Family<Gauge> connection_round_trip_seconds;
  Family<Counter> connection_retransmissions_total;
  Family<Gauge> clock_offset_seconds;
  Family<Gauge> clock_uncertainty_seconds;
  Family<Gauge> worker_up;
  Family<Gauge> worker_straggling;
  Family<Histogram> round_wait_seconds;
  Family<Counter> nonfinite_chunks_total;

  /// The rank was lost or has left: `worker_up` becomes 0, and the gauges that would show stale
  /// values vanish. Its counters stay, so that rates survive a return.
  void gone(std::int64_t rank);
};

/// What a parameter server, or the coordinator for all of them, knows of itself.
struct ServerMetrics {
  explicit ServerMetrics(Registry& registry);

  Family<Counter> push_bytes_total;
  Family<Counter> pull_bytes_total;
  Family<Histogram> push_seconds;
  Family<Histogram> pull_seconds;
  Gauge pushes_in_flight;
  Gauge pushes_in_flight_max;
  Counter ingress_bytes_total;
  Counter egress_bytes_total;
  Counter rounds_total;
  Counter rounds_incomplete_total;
  Counter turns_total;
  Counter turns_lost_total;
  Gauge slot_utilization_ratio;
  Gauge period_iterations;
  Gauge plan_version;
  Gauge link_rate_bytes_per_second;
  Gauge link_start_seconds;
  Family<Counter> refused_frames_total;

  void refused(RefusalReason reason) { refused_frames_total.at(to_string(reason)).add(); }
};

}  // namespace stagger
