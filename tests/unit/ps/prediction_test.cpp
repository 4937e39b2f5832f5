#include "ps/prediction.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ps/period_choice.hpp"

namespace stagger {
namespace {

/// Layers in backward order, each with `forward` and twice that backward, in ms.
std::vector<LayerProfile> layers_of(const std::vector<int>& forward, std::uint64_t bytes = 1000) {
  std::vector<LayerProfile> layers;
  for (auto time = forward.rbegin(); time != forward.rend(); ++time) {
    layers.push_back(
        {.name = "layer" + std::to_string(layers.size()),
         .parameters = bytes / 4,
         .bytes = bytes,
         .forward = *time * 1ms,
         .backward = 2 * *time * 1ms});
  }
  return layers;
}

/// 1000 bytes take 1 ms, after no start.
constexpr LinkCost example_link{.start = 0ms, .seconds_per_byte = 1e-6};

struct Scenario {
  Strategy strategy = Strategy::interleaved;
  UpdateRule rule = UpdateRule::old_center;
  std::uint32_t period = 1;
  std::uint32_t workers = 2;
  Admission admission = Admission::none;
};

PlanRequest request_of(const std::vector<LayerProfile>& layers, const Scenario& setup) {
  const auto verdict = resolve(
      {.strategy = setup.strategy,
       .rule = setup.rule,
       .period = setup.period,
       .workers = setup.workers,
       .alpha = std::nullopt});
  return {
      .layers = layers,
      .policy = verdict.value().policy,
      .grouping = {.planner = GroupPlanner::layerwise, .period = setup.period},
      .admission = setup.admission};
}

Prediction predict_for(
    const std::vector<LayerProfile>& layers,
    const Scenario& setup,
    const LinkCost& link = example_link) {
  return predict(make_plan(request_of(layers, setup)), layers, link);
}

RoundPrediction times(
    Iteration iteration, const std::vector<Duration>& times, Duration exposed, Duration need) {
  return {
      .iteration = iteration,
      .ready = times.at(0),
      .push_start = times.at(1),
      .push_end = times.at(2),
      .reply_end = times.at(3),
      .exposed = exposed,
      .need = need};
}

// Three groups of 1 ms forward and 2 ms backward: forward until 3, ready at 5, 7 and 9 ms; two
// workers push 1 ms each.

TEST(Prediction, old_center_hides_what_comes_within_a_period) {
  const Prediction prediction = predict_for(layers_of({1, 1, 1}), {});
  ASSERT_EQ(prediction.rounds.size(), 3U);
  EXPECT_EQ(prediction.rounds[0], times(Iteration(1), {5ms, 5ms, 7ms, 9ms}, 0ms, 2ms));
  EXPECT_EQ(prediction.rounds[1], times(Iteration(1), {7ms, 7ms, 9ms, 11ms}, 0ms, 2ms));
  EXPECT_EQ(prediction.rounds[2], times(Iteration(1), {9ms, 9ms, 11ms, 13ms}, 0ms, 2ms));
  EXPECT_EQ(prediction.compute, 9ms);
  EXPECT_EQ(prediction.iteration, 9ms);
  EXPECT_TRUE(prediction.hidden);
  EXPECT_DOUBLE_EQ(prediction.link_utilisation, 6.0 / 9.0);
}

TEST(Prediction, fresh_center_waits_where_the_next_forward_needs_the_reply) {
  const Prediction prediction =
      predict_for(layers_of({1, 1, 1}), {.rule = UpdateRule::fresh_center});
  // The next forward reaches group 2 at 9 ms, its reply comes at 13: 4 ms later; groups 1 and 0
  // then have had theirs. In the steady state an iteration starts with those 4 ms.
  EXPECT_EQ(prediction.rounds[2], times(Iteration(1), {13ms, 13ms, 15ms, 17ms}, 4ms, 2ms));
  EXPECT_EQ(prediction.rounds[1].exposed, 0ms);
  EXPECT_EQ(prediction.rounds[0].exposed, 0ms);
  EXPECT_EQ(prediction.iteration, 13ms);
  EXPECT_EQ(prediction.exposed, 4ms);
  EXPECT_FALSE(prediction.hidden);
}

TEST(Prediction, every_rule_but_old_center_waits_before_the_next_forward) {
  const auto layers = layers_of({1, 1, 1});
  const Duration fresh = predict_for(layers, {.rule = UpdateRule::fresh_center}).iteration;
  EXPECT_EQ(predict_for(layers, {.rule = UpdateRule::post_step}).iteration, fresh);
  EXPECT_EQ(predict_for(layers, {.strategy = Strategy::bsp}).iteration, fresh);
  EXPECT_EQ(predict_for(layers, {.strategy = Strategy::local_sgd}).iteration, fresh);
}

TEST(Prediction, local_sgd_waits_once_a_period) {
  const Prediction prediction =
      predict_for(layers_of({1, 1, 1}), {.strategy = Strategy::local_sgd, .period = 4});
  EXPECT_EQ(prediction.rounds[2], times(Iteration(4), {9ms, 9ms, 11ms, 13ms}, 4ms, 2ms));
  EXPECT_EQ(prediction.iteration, 10ms);
  EXPECT_EQ(prediction.exposed, 1ms);
}

TEST(Prediction, old_center_waits_for_a_reply_that_is_a_whole_period_late) {
  // One group, ready at 3 ms of an iteration of 3: a push takes 2 ms, two of them and two replies
  // 8. The group is due again 3 ms later, and waits 5.
  const Prediction prediction = predict_for(layers_of({1}, 2000), {});
  EXPECT_EQ(prediction.rounds[0].exposed, 5ms);
  EXPECT_EQ(prediction.iteration, 8ms);
  EXPECT_FALSE(prediction.hidden);
}

TEST(Prediction, a_period_spreads_the_groups_over_its_iterations) {
  const Prediction prediction = predict_for(layers_of({1, 1, 1}), {.period = 3});
  EXPECT_EQ(prediction.rounds[0], times(Iteration(3), {5ms, 5ms, 7ms, 9ms}, 0ms, 2ms));
  EXPECT_EQ(prediction.rounds[1], times(Iteration(2), {7ms, 7ms, 9ms, 11ms}, 0ms, 2ms));
  EXPECT_EQ(prediction.rounds[2], times(Iteration(1), {9ms, 9ms, 11ms, 13ms}, 0ms, 2ms));
  EXPECT_DOUBLE_EQ(prediction.link_utilisation, 6.0 / 27.0);
}

TEST(Prediction, iterations_without_groups_carry_no_traffic) {
  const Prediction prediction =
      predict_for(layers_of({1, 1}), {.rule = UpdateRule::fresh_center, .period = 1'000'000});
  // 4 ms for the input side's group; the next iteration begins with them, and group 0 has its reply
  // 1 ms late.
  EXPECT_EQ(prediction.rounds[0], times(Iteration(2), {8ms, 8ms, 10ms, 12ms}, 1ms, 2ms));
  EXPECT_EQ(prediction.rounds[1], times(Iteration(1), {6ms, 6ms, 8ms, 10ms}, 4ms, 2ms));
  EXPECT_EQ(prediction.iteration, 6ms + 5ns);
}

TEST(Prediction, one_worker_has_the_link_alone) {
  const Prediction prediction = predict_for(layers_of({1, 1, 1}), {.workers = 1});
  EXPECT_EQ(prediction.rounds[0], times(Iteration(1), {5ms, 5ms, 6ms, 7ms}, 0ms, 1ms));
}

TEST(Prediction, pushes_wait_for_their_slot_under_admission_slots) {
  const auto layers = layers_of({1, 1, 1});
  const Prediction prediction = predict_for(layers, {.admission = Admission::slots});
  // Windows 2, 2 and 0 ms: the second worker begins after half of them, or when the first is done.
  EXPECT_EQ(prediction.rounds[0].push_end, 7ms);
  LinkCost fast = example_link;
  fast.seconds_per_byte = 0.25e-6;
  EXPECT_EQ(predict_for(layers, {}, fast).rounds[0].push_end, 5500us);
  EXPECT_EQ(predict_for(layers, {.admission = Admission::slots}, fast).rounds[0].push_end, 6250us);
  EXPECT_EQ(
      predict_for(layers, {.admission = Admission::slots_grants}, fast).rounds[0].push_end, 5500us);
}

TEST(Prediction, the_link_bounds_the_iteration_also_while_a_backlog_still_grows) {
  // 6.006 ms of pushes in 6 ms of compute: no wait for long, but never steady.
  const Prediction prediction =
      predict_for(layers_of({1, 1}, 1'501'500), {}, {.start = 0ms, .seconds_per_byte = 1e-9});
  EXPECT_GE(prediction.iteration, 6006us);
  EXPECT_FALSE(prediction.hidden);
  EXPECT_LE(prediction.link_utilisation, 1.0);
}

TEST(Prediction, need_is_held_against_the_window) {
  const auto layers = layers_of({1, 1, 1});
  const Plan plan = make_plan(request_of(layers, {}));
  const Prediction prediction = predict(plan, layers, example_link);
  EXPECT_TRUE(prediction.rounds[0].fits(plan.groups[0].slot));   // 2 ms in 2 ms
  EXPECT_FALSE(prediction.rounds[2].fits(plan.groups[2].slot));  // 2 ms in 0
}

TEST(Prediction, layers_without_times_wait_for_the_link_alone) {
  const Prediction prediction = predict_for(layers_of({0, 0}), {});
  EXPECT_EQ(prediction.compute, 0ms);
  EXPECT_GE(prediction.iteration, 4ms);
  EXPECT_FALSE(prediction.hidden);
  const LinkCost free{.start = 0ms, .seconds_per_byte = 0.0};
  const Prediction nothing = predict_for(layers_of({0, 0}), {}, free);
  EXPECT_EQ(nothing.iteration, 0ms);
  EXPECT_EQ(nothing.link_utilisation, 0.0);
  EXPECT_TRUE(nothing.hidden);
}

TEST(Prediction, a_link_of_any_slowness_stays_within_the_range_of_times) {
  const LinkCost slow{.start = 3'600'000ms, .seconds_per_byte = 8.0};
  const Prediction prediction =
      predict_for(layers_of({1, 1}, std::uint64_t{1} << 60), {.workers = 4096}, slow);
  EXPECT_GT(prediction.iteration, 0ms);
  EXPECT_GT(prediction.rounds[1].reply_end, 0ms);
}

TEST(Prediction, waits_and_compute_make_the_iteration_with_two_thousand_layers) {
  const auto layers = layers_of(std::vector<int>(2000, 1));
  const Scenario setup{.rule = UpdateRule::fresh_center, .period = 7, .workers = 4};
  const Prediction prediction = predict_for(layers, setup);
  Duration waits{0};
  for (const RoundPrediction& round : prediction.rounds)
    waits += round.exposed;
  EXPECT_GT(waits, 0ms);
  EXPECT_EQ(prediction.iteration, prediction.compute + (waits + 3ns) / 7);
}

PeriodChoice choice_for(const std::vector<LayerProfile>& layers, const Scenario& setup) {
  PlanRequest planning = request_of(layers, setup);
  const PolicyRequest policy{
      .strategy = setup.strategy,
      .rule = setup.rule,
      .period = setup.period,
      .workers = setup.workers,
      .alpha = std::nullopt};
  return choose_period(policy, planning, example_link).value();
}

TEST(PeriodChoice, is_the_smallest_period_that_hides_communication) {
  // Three groups of 4 ms a push, two workers: 24 ms of link for 9 ms of compute.
  const PeriodChoice choice = choice_for(layers_of({1, 1, 1}, 4000), {});
  EXPECT_EQ(choice.period, 3U);
  EXPECT_TRUE(choice.hides);
  EXPECT_EQ(
      choice.reason,
      "T=3 is the smallest whose prediction hides communication (link busy 89 % of the time)");
  EXPECT_EQ(choice_for(layers_of({1, 1, 1}), {}).period, 1U);
}

TEST(PeriodChoice, comes_near_the_least_time_where_no_period_hides_all) {
  const PeriodChoice choice = choice_for(layers_of({1, 1, 1}), {.rule = UpdateRule::fresh_center});
  EXPECT_FALSE(choice.hides);
  // 5 ms of waits in T*9 ms: within 5 % of T=64's from T=10 on.
  EXPECT_EQ(choice.period, 10U);
  EXPECT_NE(choice.reason.find("no T up to 64 hides communication; T=10"), std::string::npos);
}

TEST(PeriodChoice, is_one_for_bsp_and_asks_the_stability_theory_otherwise) {
  EXPECT_EQ(choice_for(layers_of({1}), {.strategy = Strategy::bsp}).period, 1U);
  PlanRequest planning = request_of(layers_of({1}), {});
  const PolicyRequest unstable{.workers = 2, .alpha = 1.9};
  EXPECT_TRUE(choose_period(unstable, planning, example_link).has_error());
  // Stable with T >= 2 alone.
  const PolicyRequest tight{.workers = 2, .alpha = 1.0};
  EXPECT_EQ(choose_period(tight, planning, example_link).value().period, 2U);
}

TEST(PeriodChoice, finishes_with_two_thousand_layers_and_the_planner_that_is_slowest) {
  const auto layers = layers_of(std::vector<int>(2000, 1), 4000);
  PlanRequest planning = request_of(layers, {});
  planning.grouping.planner = GroupPlanner::optimal;
  planning.grouping.link = shared_by(example_link, 2);
  const PolicyRequest policy{.rule = UpdateRule::fresh_center, .workers = 2, .alpha = std::nullopt};
  EXPECT_LE(choose_period(policy, planning, example_link).value().period, chosen_period_max);
}

}  // namespace
}  // namespace stagger
