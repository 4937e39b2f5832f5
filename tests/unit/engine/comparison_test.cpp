#include "engine/comparison.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stagger {
namespace {

using json = nlohmann::json;
using testing::HasSubstr;

std::string mistake(
    const std::string& strategies, const std::string& periods, const std::string& admissions) {
  try {
    combinations(strategies, periods, admissions);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

ComparedRow row(double iteration_us) {
  return {
      .combination =
          {.strategy = Strategy::easgd, .period = 3, .admission = Admission::slots_grants},
      .figures =
          RunFigures{
              .iteration_us = iteration_us,
              .bytes_pushed = 2e6,
              .pushes_in_flight_max = 4,
              .push_p50_us = 1500,
              .push_p99_us = 2500,
              .exposed_seconds = 0.25},
      .predicted_iteration_us = std::nullopt,
      .why_not = {}};
}

ComparedRow refused() {
  return {
      .combination = {.strategy = Strategy::local_sgd, .period = 1, .admission = Admission::none},
      .why_not = "refused: sync.rule"};
}

TEST(Combinations, are_all_of_three_lists_and_bsp_once_for_all_periods) {
  std::vector<std::string> names;
  for (const Combination& combination : combinations("bsp,easgd", "1,4", "none,slots+grants"))
    names.push_back(job_name(combination));
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "bsp-T1-none",
          "bsp-T1-slots-grants",
          "easgd-T1-none",
          "easgd-T1-slots-grants",
          "easgd-T4-none",
          "easgd-T4-slots-grants"}));
}

TEST(Combinations, that_cannot_be_read_name_the_flag_and_what_is_expected) {
  EXPECT_THAT(mistake("easgd,esgd", "1", "none"), HasSubstr("--strategies \"esgd\": expected"));
  EXPECT_THAT(mistake("easgd", "1", "none,"), HasSubstr("--admissions \"\": expected none, slots"));
  for (const char* period : {"0", "-1", "1.5", "x", "", "4294967297", " 1"})
    EXPECT_THAT(mistake("easgd", period, "none"), HasSubstr("--periods")) << period;
}

TEST(Combinations, override_what_distinguishes_them) {
  const auto overrides = overrides_of(combinations("easgd", "4", "slots+grants").front());
  ASSERT_EQ(overrides.size(), 3U);
  EXPECT_EQ(overrides[0].key + "=" + overrides[0].value, "sync.strategy=easgd");
  EXPECT_EQ(overrides[1].key + "=" + overrides[1].value, "sync.period=4");
  EXPECT_EQ(overrides[2].key + "=" + overrides[2].value, "slots.admission=slots+grants");
}

TEST(Comparison, tells_speed_against_the_first_row_that_ran) {
  const std::vector<ComparedRow> rows{refused(), row(3000), row(2000)};
  const json table = json::parse(comparison_json(rows));
  EXPECT_EQ(table[0]["why_not"], "refused: sync.rule");
  EXPECT_TRUE(table[0]["iteration_us"].is_null());
  EXPECT_TRUE(table[0]["speed_up"].is_null());
  EXPECT_TRUE(table[1]["why_not"].is_null());
  EXPECT_EQ(table[1]["speed_up"], 1.0);
  EXPECT_EQ(table[2]["speed_up"], 1.5);
  EXPECT_EQ(table[2]["strategy"], "easgd");
  EXPECT_EQ(table[2]["period"], 3);
  EXPECT_EQ(table[2]["admission"], "slots+grants");
  EXPECT_EQ(table[2]["push_p99_us"], 2500.0);
}

TEST(Comparison, holds_predictions_against_what_was_measured_where_there_are_both) {
  ComparedRow known = row(2000);
  known.predicted_iteration_us = 1000;
  const json table = json::parse(comparison_json(std::vector{row(2000), known}));
  EXPECT_TRUE(table[0]["predicted_per_measured"].is_null());
  EXPECT_EQ(table[1]["predicted_per_measured"], 0.5);
}

TEST(Comparison, shows_people_every_row_and_the_reason_of_those_that_did_not_run) {
  const std::string text = comparison_text(std::vector{row(2500), refused()});
  EXPECT_THAT(text, HasSubstr("easgd, T=3, slots+grants"));
  EXPECT_THAT(text, HasSubstr(" 2.50 "));
  EXPECT_THAT(text, HasSubstr("local_sgd, T=1, none"));
  EXPECT_THAT(text, HasSubstr("refused: sync.rule"));
}

TEST(Comparison, of_nothing_that_ran_has_no_speed) {
  const json table = json::parse(comparison_json(std::vector{refused()}));
  EXPECT_TRUE(table[0]["speed_up"].is_null());
}

}  // namespace
}  // namespace stagger
