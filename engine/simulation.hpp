#pragma once

#include <cstdint>
#include <memory>

#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "engine/workload.hpp"
#include "net/sim/world.hpp"
#include "ps/server.hpp"

namespace stagger {

struct SimulationOptions {
  std::uint64_t seed = 1;         ///< of the virtual world; the job has its own
  NodeOptions node;               ///< links of every node
  double flops_per_second = 5e9;  ///< of every worker's processor
  double compute_jitter = 0.05;   ///< computing takes up to this share longer, at random
};

struct SimulationResult {
  Arena center;
  ServerTotals totals;
  ServerStatus status;
  double virtual_seconds = 0.0;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
};

/// The production Server and Workers, with real arithmetic, on a virtual clock and network. The
/// same seeds give the same trace; the parameters are those of a run over TCP, bit for bit.
///
/// Throws what the roles throw, and Deadlock.
SimulationResult simulate(
    const Config& config, const Workload& workload, const SimulationOptions& options);

/// Of training on these data.
SimulationResult simulate(
    const Config& config, const Dataset& train, const SimulationOptions& options);

}  // namespace stagger
