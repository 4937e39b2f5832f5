#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "engine/workload.hpp"
#include "net/sim/world.hpp"
#include "ps/server.hpp"
#include "ps/timeline.hpp"

namespace stagger {

struct SimulationOptions {
  std::uint64_t seed = 1;  ///< of the virtual world; the job has its own
  NodeOptions node;        ///< links of the workers, and of the PS unless `ps` is set
  std::optional<NodeOptions> ps = std::nullopt;  ///< links of the PS
  /// Set: frames travel as segments; the queue of an ingress link drops what it does not hold.
  std::optional<TcpModelOptions> tcp = std::nullopt;
  double flops_per_second = 5e9;     ///< of every worker's processor
  double compute_jitter = 0.05;      ///< computing takes up to this share longer, at random
  std::uint32_t stragglers = 0;      ///< so many workers, those of the highest ranks, …
  double straggler_factor = 2.0;     ///< … compute so many times longer
  Duration clock_offset_max{0};      ///< workers' clocks are wrong by up to this, …
  double clock_drift_ppm_max = 0.0;  ///< … and gain or lose up to so many microseconds a second
  std::uint64_t wire_bytes_per_byte =
      1;                  ///< of payload: a shrunk model (engine/virtual_cluster.hpp)
  Iteration timeline_of;  ///< 0: no timelines
  std::uint64_t evaluation_interval = 0;  ///< iterations; 0: no curve
};

/// Accuracy on the way; measured at the first iteration that is at least so far.
struct CurvePoint {
  Iteration iteration;
  double virtual_seconds = 0.0;
  Evaluation evaluation;
};

/// What the port of the PS saw. Queue and drops are known where frames travel as segments.
struct PortFigures {
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;
  std::uint64_t drops = 0;
  double queue_bytes_peak = 0.0;
  double queue_bytes_mean = 0.0;    ///< over the time of training
  double ingress_bytes_peak = 0.0;  ///< in a window of 5 ms, as the next three
  double ingress_bytes_mean = 0.0;
  double offered_bytes_peak = 0.0;
  double offered_bytes_mean = 0.0;
};

struct SimulationResult {
  Arena center;
  ServerTotals totals;
  ServerStatus status;
  double virtual_seconds = 0.0;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::uint64_t retransmissions = 0;  ///< of all workers' ends
  PortFigures port;
  std::vector<Timeline> timelines;  ///< by rank, where they were asked for
  std::vector<CurvePoint> curve;
};

/// The production Server and Workers, with the workload's arithmetic, on a virtual clock and
/// network. The same seeds give the same trace; the parameters are those of a run over TCP, bit for
/// bit.
///
/// Throws what the roles throw, and Deadlock.
SimulationResult simulate(
    const Config& config, const Workload& workload, const SimulationOptions& options);

/// Of training on these data.
SimulationResult simulate(
    const Config& config, const Dataset& train, const SimulationOptions& options);

}  // namespace stagger
