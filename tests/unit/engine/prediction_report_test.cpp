#include "engine/prediction_report.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/report.hpp"
#include "ps/planner.hpp"

namespace stagger {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Two groups on a link that carries a byte per microsecond.
struct Example {
  std::vector<LayerProfile> layers{
      {.name = "front", .parameters = 250, .bytes = 1000, .forward = 1ms, .backward = 2ms},
      {.name = "back", .parameters = 250, .bytes = 1000, .forward = 1ms, .backward = 2ms}};
  Plan plan = make_plan(
      {.layers = layers,
       .policy = {.period = 2, .workers = 2},
       .grouping = {.planner = GroupPlanner::layerwise, .period = 2},
       .admission = Admission::none});

  Outlook outlook() const {
    const LinkCost link{.start = 0us, .seconds_per_byte = 1e-6};
    return {
        .link = link,
        .prediction = predict(plan, layers, link),
        .smallest = PeriodChoice{.period = 1, .hides = true, .reason = "T=1 is enough"}};
  }
};

TEST(PredictionReport, stands_beside_the_keys_of_the_plan) {
  const Example example;
  const Outlook outlook = example.outlook();
  const json value = json::parse(plan_json(example.plan, example.layers, &outlook));
  EXPECT_EQ(value["period"], 2);
  const json& prediction = value["prediction"];
  EXPECT_EQ(prediction["link"], json({{"rate_bits_per_second", 8e6}, {"start_us", 0.0}}));
  EXPECT_EQ(prediction["compute_us"], 6000.0);
  EXPECT_EQ(prediction["iteration_us"], 6000.0);
  EXPECT_EQ(prediction["exposed_us"], 0.0);
  EXPECT_NEAR(prediction["link_utilisation"], 1.0 / 3.0, 1e-12);
  EXPECT_EQ(prediction["hidden"], true);
  EXPECT_EQ(prediction["period_smallest"], 1);
  EXPECT_EQ(prediction["period_reason"], "T=1 is enough");
  EXPECT_EQ(
      prediction["groups"][0],
      json(
          {{"index", 0},
           {"iteration", 2},
           {"need_us", 2000.0},
           {"fits", true},
           {"ready_us", 4000.0},
           {"push_start_us", 4000.0},
           {"push_end_us", 6000.0},
           {"reply_end_us", 8000.0},
           {"exposed_us", 0.0}}));
  EXPECT_EQ(prediction["groups"][1]["fits"], false);
}

TEST(PredictionReport, is_text_for_people) {
  const Example example;
  const Outlook outlook = example.outlook();
  const std::string text = plan_text(example.plan, example.layers, &outlook);
  EXPECT_THAT(text, HasSubstr("iteration 6000.0 us: compute 6000.0 us, exposed communication 0.0"));
  EXPECT_THAT(text, HasSubstr("8 Mbit/s, 0 us before a push; busy 33 % of the time"));
  EXPECT_THAT(text, HasSubstr("T=1 is enough"));
  EXPECT_THAT(text, HasSubstr("push_until"));
}

TEST(PredictionReport, says_how_to_give_a_link_that_is_not_known) {
  const Example example;
  const Outlook outlook;
  EXPECT_TRUE(
      json::parse(plan_json(example.plan, example.layers, &outlook))["prediction"].is_null());
  EXPECT_THAT(
      plan_text(example.plan, example.layers, &outlook),
      HasSubstr("prediction      none, as the PS's link is not known: give --bandwidth 1gbit"));
}

TEST(PredictionReport, names_no_smallest_period_where_none_hides_communication) {
  const Example example;
  Outlook outlook = example.outlook();
  outlook.smallest = PeriodChoice{.period = 9, .hides = false, .reason = "none"};
  EXPECT_TRUE(prediction_value(outlook, example.plan)["period_smallest"].is_null());
}

}  // namespace
}  // namespace stagger
