#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ps/link_cost.hpp"
#include "ps/period_choice.hpp"
#include "ps/plan.hpp"
#include "ps/prediction.hpp"

/// What a plan will cost, for people and programs: the last part of `stagger plan`.
namespace stagger {

/// All of them, or none where the link is not known.
struct Outlook {
  std::optional<LinkCost> link = std::nullopt;  ///< of one worker's push
  std::optional<Prediction> prediction = std::nullopt;
  std::optional<PeriodChoice> smallest = std::nullopt;  ///< what sync.period could be
};

/// null without a link. Else link, compute_us, iteration_us, exposed_us, link_utilisation, hidden,
/// period_smallest (null where no period hides communication), period_reason, and per group index,
/// iteration, need_us, fits, ready_us, push_start_us, push_end_us, reply_end_us, exposed_us.
nlohmann::ordered_json prediction_value(const Outlook& outlook, const Plan& plan);

/// The same for people; without a link one line that says how to give it.
std::string prediction_text(const Outlook& outlook, const Plan& plan);

}  // namespace stagger
