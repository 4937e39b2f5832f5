#pragma once

#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/prediction_report.hpp"
#include "ps/grouping.hpp"
#include "ps/plan.hpp"

namespace stagger {

/// The plan that a run of a config would make from these layer times, and what it will cost where
/// the link is known.
struct PlannedConfig {
  Plan plan;
  Outlook outlook;
  std::vector<std::string> warnings;  ///< of the stability theory, for people
};

/// Throws ConfigError where the stability theory refuses the config.
PlannedConfig plan_config(const Config& config, const std::vector<LayerProfile>& layers);

}  // namespace stagger
