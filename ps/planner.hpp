#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/measured_slots.hpp"
#include "ps/plan.hpp"

/// Profile + options -> Plan. Pure.
namespace stagger {

/// How slots are planned. REQUIRES the link under rule `measured`.
struct SlotOptions {
  SlotRule rule = SlotRule::paper;
  SlotClock clock = SlotClock::local;
  std::optional<MeasuredLink> link = std::nullopt;
  /// Rule `measured`: times to go by instead of the plan's, of the same layers; empty: the plan's.
  std::vector<LayerProfile> layers = {};  // NOLINT(readability-redundant-member-init)
};

struct PlanRequest {
  std::vector<LayerProfile> layers;  ///< forward order
  SyncPolicy policy;
  GroupingOptions grouping;
  Admission admission = Admission::slots;
  SlotOptions slots = {};
};

/// Version 1 from iteration 1. Groups depend on bytes and grouping.period alone, so that strategies
/// can be compared on the same groups, unless the planner is one that needs the link: then on times
/// and phases too. Slots depend on the times of the profile and the policy's period.
/// REQUIRES what group_layers requires, and a policy from resolve().
Plan make_plan(const PlanRequest& request);

/// The same groups under another policy, with phases and slots of their own: what a change of T,
/// alpha, beta, K or admission gives.
/// `layers` as in make_plan. The version is the next one; the first iteration is still the current
/// plan's: whoever commits the plan sets it.
Plan replan(
    const Plan& current,
    std::span<const LayerProfile> layers,
    const SyncPolicy& policy,
    Admission admission,
    const SlotOptions& slots = {});

/// One profile of several workers': per layer and direction the median (lower of two middle ones).
/// REQUIRES equal layer counts and at least one profile.
std::vector<LayerProfile> merge_profiles(std::span<const std::vector<LayerProfile>> profiles);

/// The same for slots that must fit every worker: backward times under which each layer is done
/// when the last of the workers is done with it; forward times as above. REQUIRES the same.
std::vector<LayerProfile> latest_profile(std::span<const std::vector<LayerProfile>> profiles);

/// The layers with all times multiplied by `factor`, none longer than an hour. REQUIRES factor > 0.
std::vector<LayerProfile> scaled_times(std::vector<LayerProfile> layers, double factor);

/// Reads `name,params,bytes,t_fwd_us,t_bwd_us` lines, forward order, header line optional. Fails
/// with bad_message; the detail names `source`, line, column and what is wrong (missing, negative
/// or not a number).
Result<std::vector<LayerProfile>> parse_profile_csv(std::string_view text, std::string_view source);

}  // namespace stagger
