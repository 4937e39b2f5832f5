#pragma once

#include <optional>
#include <span>
#include <string>

#include "engine/evaluation.hpp"
#include "engine/prediction_report.hpp"
#include "ps/grouping.hpp"
#include "ps/plan.hpp"
#include "ps/server.hpp"

/// What people and programs read after a run, and before one.
namespace stagger {

struct RunFacts {
  const Server* server = nullptr;
  std::optional<Evaluation> evaluation;  ///< none: no loss was computed at all
  std::string parameters_sha256;
  double effective_learning_rate_share = 1.0;
};

/// `report.json`.
std::string report_json(const RunFacts& facts);

/// The same for people, a few lines.
std::string report_text(const std::string& report_json);

/// `plan --json`: per group index, layers, bytes, due (iterations of the first period), cur_us,
/// window_us, slot_us. With an outlook also `prediction` (engine/prediction_report.hpp).
std::string plan_json(
    const Plan& plan, std::span<const LayerProfile> layers, const Outlook* outlook = nullptr);

/// The same as a table, with a picture of the windows.
std::string plan_text(
    const Plan& plan, std::span<const LayerProfile> layers, const Outlook* outlook = nullptr);

/// GET /v1/status.
std::string status_json(const Server& server, TimePoint now);

/// {"period": 4}, and beside it from which iteration, and whether it still follows what is
/// measured.
std::string period_json(const Server& server);

}  // namespace stagger
