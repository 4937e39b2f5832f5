#pragma once

#include <string>

#include "engine/virtual_cluster.hpp"

/// A simulated run for people and programs. Pure.
namespace stagger {

struct SimulatedRun {
  const VirtualJob& job;
  const SimulationResult& result;
  std::optional<Evaluation> evaluation;          ///< of the final center, with real arithmetic
  std::optional<double> predicted_iteration_us;  ///< what the plan says
  double wall_seconds = 0.0;                     ///< that the simulation took
  std::string parameters_sha256;
};

/// One object; byte counts are those of the whole model, however it was shrunk.
std::string simulation_json(const SimulatedRun& run);

std::string simulation_text(const SimulatedRun& run);

}  // namespace stagger
