#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/protocol.hpp"
#include "tests/support/messages.hpp"

// The part of a plan that belongs to strategy diloco.
namespace stagger {
namespace {

using testing::HasSubstr;

Result<Message> round_trip(const Begin& begin) {
  constexpr std::uint64_t job = 7;
  auto words = encode_message(job, begin);
  return decode_message(job, FrameHead{.words = std::move(words), .payload_bytes = 0});
}

std::string refusal(const Begin& begin) {
  const auto back = round_trip(begin);
  if (back) return "accepted";
  EXPECT_EQ(back.error().code, Errc::bad_message);
  return back.error().detail;
}

Plan diloco_plan() {
  Plan plan = example_plan();
  plan.policy.strategy = Strategy::diloco;
  plan.policy.rule = UpdateRule::post_step;
  plan.policy.alpha = 0.5;
  plan.policy.beta = 0.7;
  plan.policy.outer_momentum = 0.9;
  return plan;
}

TEST(Protocol, carries_the_outer_step_of_diloco) {
  const Plan plan = diloco_plan();
  const auto back = round_trip(Begin{.plans = {plan}});
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(std::get<Begin>(*back).plans.front(), plan);
}

TEST(Protocol, refuses_an_outer_step_that_no_config_could_have_given) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto why = [](const std::function<void(SyncPolicy&)>& change) {
    Plan plan = diloco_plan();
    change(plan.policy);
    return refusal(Begin{.plans = {plan}});
  };
  for (const double bad : {-0.1, 1.0, nan}) {
    EXPECT_THAT(
        why([bad](SyncPolicy& policy) { policy.outer_momentum = bad; }),
        HasSubstr("outerMomentum"));
  }
  for (const double bad : {0.0, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(
        why([bad](SyncPolicy& policy) { policy.beta = bad; }), HasSubstr("outer learning rate"));
  }
  for (const double bad : {0.0, 1.1, nan}) {
    EXPECT_THAT(why([bad](SyncPolicy& policy) { policy.alpha = bad; }), HasSubstr("mixing"));
  }
  EXPECT_THAT(
      why([](SyncPolicy& policy) { policy.rule = UpdateRule::old_center; }),
      HasSubstr("old_center"));
  EXPECT_THAT(
      why([](SyncPolicy& policy) { policy.strategy = Strategy::easgd; }),
      HasSubstr("without strategy diloco"));
}

}  // namespace
}  // namespace stagger
