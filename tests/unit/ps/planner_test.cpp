#include "ps/planner.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr std::string_view header = "name,params,bytes,t_fwd_us,t_bwd_us\n";

/// The worked example as nine layers; the last of them has the first backward.
std::vector<LayerProfile> example_layers() {
  std::vector<LayerProfile> layers;
  for (const int time : {6, 10, 8, 8, 8, 6, 6, 4, 4}) {
    layers.push_back(
        {.name = "layer" + std::to_string(layers.size()),
         .parameters = 25,
         .bytes = 100,
         .forward = time * 500us,
         .backward = time * 1ms});
  }
  return layers;
}

PlanRequest example_request() {
  PlanRequest request;
  request.layers = example_layers();
  request.policy.period = 3;
  request.policy.workers = 4;
  request.grouping.planner = GroupPlanner::layerwise;
  return request;
}

std::string refusal(std::string_view text) {
  const auto layers = parse_profile_csv(text, "p.csv");
  if (layers.has_value()) return "accepted";
  EXPECT_EQ(layers.error().code, Errc::bad_message);
  return layers.error().detail;
}

TEST(Planner, makes_groups_and_slots_of_the_worked_example) {
  const Plan plan = make_plan(example_request());
  EXPECT_EQ(plan.version, PlanVersion(1));
  EXPECT_EQ(plan.first_iteration, Iteration(1));
  EXPECT_EQ(plan.admission, Admission::slots);
  ASSERT_EQ(plan.groups.size(), 9U);
  EXPECT_EQ(plan.groups[0].range.layers, (LayerRange{.begin = 8, .end = 9}));
  EXPECT_EQ(plan.groups[2].slot.current, 14ms);
  EXPECT_EQ(plan.groups[2].slot.window, 22ms);
  EXPECT_EQ(plan.groups[2].slot.slot, 5500us);
}

TEST(Planner, groups_by_bytes_whatever_the_times) {
  PlanRequest request = example_request();
  request.grouping = {.count = 4};
  const Plan fast = make_plan(request);
  for (LayerProfile& layer : request.layers)
    layer.backward *= 7;
  const Plan slow = make_plan(request);
  ASSERT_EQ(fast.groups.size(), slow.groups.size());
  for (std::size_t group = 0; group < fast.groups.size(); ++group) {
    EXPECT_EQ(fast.groups[group].range, slow.groups[group].range);
    EXPECT_EQ(7 * fast.groups[group].slot.current, slow.groups[group].slot.current);
  }
}

TEST(Planner, replans_slots_and_keeps_groups) {
  const PlanRequest request = example_request();
  const Plan before = make_plan(request);
  SyncPolicy policy = request.policy;
  policy.period = 1;
  policy.workers = 2;
  const Plan after = replan(before, request.layers, policy, Admission::none);
  EXPECT_EQ(after.version, PlanVersion(2));
  EXPECT_EQ(after.policy, policy);
  EXPECT_EQ(after.admission, Admission::none);
  ASSERT_EQ(after.groups.size(), before.groups.size());
  EXPECT_EQ(after.groups[3].range, before.groups[3].range);
  EXPECT_EQ(after.groups[3].slot.window, 8ms);
  EXPECT_EQ(after.groups[3].slot.slot, 4ms);
}

TEST(Planner, replanning_with_the_same_policy_changes_the_version_alone) {
  const PlanRequest request = example_request();
  const Plan before = make_plan(request);
  Plan after = replan(before, request.layers, request.policy, request.admission);
  after.version = before.version;
  EXPECT_EQ(after, before);
}

TEST(Planner, merges_profiles_by_the_lower_median_of_each_time) {
  std::vector<std::vector<LayerProfile>> profiles(4, example_layers());
  const std::vector<Duration> times{40us, 10us, 30us, 20us};
  for (std::size_t worker = 0; worker < profiles.size(); ++worker) {
    profiles[worker][1].forward = times[worker];
    profiles[worker][2].backward = times[worker];
  }
  const std::vector<LayerProfile> merged = merge_profiles(profiles);
  ASSERT_EQ(merged.size(), 9U);
  EXPECT_EQ(merged[1].forward, 20us);
  EXPECT_EQ(merged[2].backward, 20us);
  EXPECT_EQ(merged[1].backward, 10ms);
  profiles.pop_back();
  EXPECT_EQ(merge_profiles(profiles)[1].forward, 30us);
}

TEST(Planner, takes_for_slots_when_the_last_worker_is_done_with_each_layer) {
  std::vector<std::vector<LayerProfile>> profiles(2, example_layers());
  profiles[0][8].backward = 9ms;  // the output side: first in backward
  profiles[1][8].backward = 1ms;
  profiles[0][7].backward = 1ms;
  profiles[1][7].backward = 20ms;
  const std::vector<LayerProfile> latest = latest_profile(profiles);
  EXPECT_EQ(latest[8].backward, 9ms);
  EXPECT_EQ(latest[7].backward, 12ms);  // the second worker, after 21 ms
  EXPECT_EQ(latest[6].backward, profiles[1][6].backward);
  EXPECT_EQ(latest[8].forward, profiles[0][8].forward);
}

TEST(Planner, scales_times_and_keeps_sizes) {
  const std::vector<LayerProfile> layers = example_layers();
  const std::vector<LayerProfile> scaled = scaled_times(layers, 1.5);
  EXPECT_EQ(2 * scaled[3].forward, 3 * layers[3].forward);
  EXPECT_EQ(2 * scaled[3].backward, 3 * layers[3].backward);
  EXPECT_EQ(scaled[3].bytes, layers[3].bytes);
  EXPECT_EQ(scaled_times(layers, 1e30)[3].backward, std::chrono::hours(1));
}

TEST(PlannerDeathTest, does_not_merge_profiles_of_different_models) {
  std::vector<std::vector<LayerProfile>> profiles(2, example_layers());
  profiles[1].pop_back();
  EXPECT_DEATH(merge_profiles(profiles), "size");
}

TEST(ProfileCsv, reads_layers_with_and_without_a_header) {
  const std::string lines = "conv1,156,624,12.5,25\nrelu1,0,0,1e0,2\n";
  for (const std::string& text : {std::string(header) + lines, lines}) {
    const auto layers = parse_profile_csv(text, "p.csv");
    ASSERT_TRUE(layers.has_value()) << layers.error().detail;
    ASSERT_EQ(layers->size(), 2U);
    EXPECT_EQ((*layers)[0].name, "conv1");
    EXPECT_EQ((*layers)[0].parameters, 156U);
    EXPECT_EQ((*layers)[0].bytes, 624U);
    EXPECT_EQ((*layers)[0].forward, 12500ns);
    EXPECT_EQ((*layers)[0].backward, 25us);
    EXPECT_EQ((*layers)[1].parameters, 0U);
    EXPECT_EQ((*layers)[1].forward, 1us);
  }
}

TEST(ProfileCsv, accepts_windows_line_ends_blank_lines_and_no_last_newline) {
  const auto layers = parse_profile_csv("a,1,4,1,1\r\n\r\nb,1,4,1,1", "p.csv");
  ASSERT_TRUE(layers.has_value()) << layers.error().detail;
  EXPECT_EQ(layers->size(), 2U);
  EXPECT_EQ((*layers)[1].name, "b");
}

TEST(ProfileCsv, names_line_and_column_of_what_is_wrong) {
  struct Case {
    std::string text;
    std::string detail;
  };

  const std::vector<Case> cases{
      {.text = "a,1,4,1", .detail = "p.csv:1:8: t_bwd_us is missing"},
      {.text = "a,1,4,,1", .detail = "p.csv:1:7: t_fwd_us is missing"},
      {.text = ",1,4,1,1", .detail = "p.csv:1:1: name is missing"},
      {.text = "a,1,4,1,", .detail = "p.csv:1:9: t_bwd_us is missing"},
      {.text = "a,1,4,1,1\nb,-1,4,1,1", .detail = "p.csv:2:3: params = -1 is negative"},
      {.text = "a,1,4,-0.5,1", .detail = "p.csv:1:7: t_fwd_us = -0.5 is negative"},
      {.text = "a,x,4,1,1", .detail = "p.csv:1:3: params = x is not a number"},
      {.text = "a,1.5,4,1,1", .detail = "p.csv:1:3: params = 1.5 is not a number"},
      {.text = "a,1,4,1us,1", .detail = "p.csv:1:7: t_fwd_us = 1us is not a number"},
      {.text = "a,1,4,1, 1", .detail = "p.csv:1:9: t_bwd_us =  1 is not a number"},
      {.text = "a,1,4,nan,1", .detail = "p.csv:1:7: t_fwd_us = nan is not a number"},
      {.text = "a,1,4,inf,1", .detail = "p.csv:1:7: t_fwd_us = inf is above 3600000000"},
      {.text = "a,1,4,1,1e400", .detail = "p.csv:1:9: t_bwd_us = 1e400 is above 3600000000"},
      {.text = "a,1,4,1,1,9", .detail = "p.csv:1:10: more than 5 fields"},
      {.text = "a,1,0,1,1", .detail = "p.csv:1:5: 1 parameters in 0 bytes cannot be"},
      {.text = "a,0,4,1,1", .detail = "p.csv:1:5: 0 parameters in 4 bytes cannot be"}};
  for (const Case& each : cases)
    EXPECT_EQ(refusal(each.text), each.detail) << each.text;
}

TEST(ProfileCsv, refuses_a_count_beyond_what_a_machine_holds) {
  EXPECT_EQ(
      refusal("a,99999999999999999999,4,1,1"),
      "p.csv:1:3: params = 99999999999999999999 is above 1125899906842624");
}

TEST(ProfileCsv, refuses_a_model_without_parameters) {
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_NE(refusal(header), "accepted");
  EXPECT_NE(refusal("a,0,0,1,1\n").find("no layer with parameters"), std::string::npos);
}

TEST(ProfileCsv, takes_a_header_in_the_first_line_only) {
  EXPECT_EQ(
      refusal("a,1,4,1,1\n" + std::string(header)), "p.csv:2:6: params = params is not a number");
}

}  // namespace
}  // namespace stagger
