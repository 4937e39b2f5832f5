#include "ps/policy.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagger {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal(const PolicyRequest& request) {
  const auto verdict = resolve(request);
  if (verdict.has_value()) return "accepted";
  EXPECT_EQ(verdict.error().code, Errc::refused);
  return verdict.error().detail;
}

PolicyVerdict accept(const PolicyRequest& request) {
  auto verdict = resolve(request);
  if (verdict.has_error()) {
    ADD_FAILURE() << verdict.error().detail;
    return {};
  }
  return *verdict;
}

TEST(Policy, derives_alpha_from_beta_and_workers) {
  const PolicyVerdict verdict = accept({.workers = 4});
  EXPECT_EQ(verdict.policy.beta, 0.9);
  EXPECT_EQ(verdict.policy.alpha, 0.9 / 4);
  EXPECT_EQ(verdict.policy.period, 3U);
  EXPECT_EQ(verdict.policy.workers, 4U);
  EXPECT_EQ(verdict.policy.phase, PhaseRule::residue);
  EXPECT_DOUBLE_EQ(verdict.effective_learning_rate_share, 0.8);
  EXPECT_THAT(verdict.warnings, IsEmpty());
}

TEST(Policy, keeps_what_is_given) {
  const PolicyVerdict verdict = accept({.workers = 4, .alpha = 0.3, .beta = 0.6});
  EXPECT_EQ(verdict.policy.alpha, 0.3);
  EXPECT_EQ(verdict.policy.beta, 0.6);
}

TEST(Policy, lets_one_worker_train_with_any_strategy) {
  for (const Strategy strategy :
       {Strategy::interleaved,
        Strategy::easgd,
        Strategy::local_sgd,
        Strategy::diloco,
        Strategy::bsp}) {
    for (const double momentum : {0.0, 0.9}) {
      const PolicyVerdict verdict =
          accept({.strategy = strategy, .workers = 1, .momentum = momentum});
      EXPECT_EQ(verdict.policy.workers, 1U) << to_string(strategy);
    }
  }
  EXPECT_EQ(accept({.workers = 1}).policy.alpha, 0.45);
}

TEST(Policy, makes_local_sgd_plain_averaging_after_the_step) {
  const SyncPolicy policy =
      accept({.strategy = Strategy::local_sgd, .period = 5, .workers = 4}).policy;
  const SyncPolicy expected{
      .strategy = Strategy::local_sgd,
      .rule = UpdateRule::post_step,
      .phase = PhaseRule::together,
      .period = 5,
      .workers = 4,
      .alpha = 1.0,
      .beta = 1.0};
  EXPECT_EQ(policy, expected);
  EXPECT_FALSE(policy.pushes_gradients());
}

TEST(Policy, refuses_another_alpha_or_beta_under_local_sgd) {
  EXPECT_THAT(
      refusal({.strategy = Strategy::local_sgd, .workers = 4, .alpha = 0.3}),
      AllOf(HasSubstr("sync.alpha = 0.3"), HasSubstr("local_sgd"), HasSubstr("remove")));
  EXPECT_THAT(
      refusal({.strategy = Strategy::local_sgd, .workers = 4, .beta = 0.5}),
      HasSubstr("sync.beta = 0.5"));
  accept({.strategy = Strategy::local_sgd, .workers = 4, .alpha = 1.0, .beta = 1.0});
}

TEST(Policy, makes_bsp_exchange_gradients_in_every_iteration) {
  const PolicyVerdict verdict = accept({.strategy = Strategy::bsp, .workers = 4, .momentum = 0.9});
  EXPECT_EQ(verdict.policy.period, 1U);
  EXPECT_EQ(verdict.policy.phase, PhaseRule::together);
  EXPECT_TRUE(verdict.policy.pushes_gradients());
  EXPECT_THAT(verdict.warnings, IsEmpty());
}

TEST(Policy, says_what_bsp_ignores) {
  const PolicyVerdict verdict =
      accept({.strategy = Strategy::bsp, .period = 7, .workers = 4, .alpha = 5.0});
  ASSERT_EQ(verdict.warnings.size(), 2U);
  EXPECT_THAT(verdict.warnings[0], HasSubstr("sync.period = 7"));
  EXPECT_THAT(verdict.warnings[1], HasSubstr("sync.alpha"));
}

TEST(Policy, puts_easgd_into_one_phase) {
  EXPECT_EQ(accept({.strategy = Strategy::easgd, .workers = 4}).policy.phase, PhaseRule::together);
}

TEST(Policy, takes_the_phases_that_are_asked_for_under_interleaved_alone) {
  const PolicyVerdict level = accept({.workers = 4, .phase = PhaseRule::level});
  EXPECT_EQ(level.policy.phase, PhaseRule::level);
  EXPECT_THAT(level.warnings, IsEmpty());
  const PolicyVerdict easgd =
      accept({.strategy = Strategy::easgd, .workers = 4, .phase = PhaseRule::level});
  EXPECT_EQ(easgd.policy.phase, PhaseRule::together);
  ASSERT_EQ(easgd.warnings.size(), 1U);
  EXPECT_THAT(easgd.warnings[0], HasSubstr("sync.phases = \"level\" has no effect"));
}

TEST(Policy, makes_diloco_an_outer_step_on_plain_averages) {
  const PolicyVerdict verdict = accept({.strategy = Strategy::diloco, .period = 30, .workers = 4});
  const SyncPolicy expected{
      .strategy = Strategy::diloco,
      .rule = UpdateRule::post_step,
      .phase = PhaseRule::together,
      .period = 30,
      .workers = 4,
      .alpha = 1.0,
      .beta = 0.7,
      .outer_momentum = 0.9};
  EXPECT_EQ(verdict.policy, expected);
  EXPECT_DOUBLE_EQ(verdict.effective_learning_rate_share, 7.0);
  ASSERT_EQ(verdict.warnings.size(), 1U);
  EXPECT_THAT(
      verdict.warnings[0],
      AllOf(HasSubstr("sync.outer_momentum = 0.9"), HasSubstr("no proof"), HasSubstr("momentum")));
}

TEST(Policy, exchanges_diloco_in_phases_when_asked_to) {
  PolicyRequest request{.strategy = Strategy::diloco, .workers = 4, .phase = PhaseRule::residue};
  request.outer_momentum = 0.0;
  EXPECT_EQ(accept(request).policy.phase, PhaseRule::residue);
  EXPECT_THAT(accept(request).warnings, IsEmpty()) << "without momentum it is post_step: proven";
  EXPECT_EQ(phase_of(request), PhaseRule::residue);
  request.phase = std::nullopt;
  EXPECT_EQ(phase_of(request), PhaseRule::together);
}

TEST(Policy, refuses_outer_constants_out_of_range_by_name) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  PolicyRequest request{.strategy = Strategy::diloco, .period = 8, .workers = 4};
  for (const double bad : {0.0, -1.0, nan, infinity}) {
    PolicyRequest changed = request;
    changed.outer_lr = bad;
    EXPECT_THAT(refusal(changed), HasSubstr("sync.outer_lr = "));
    changed = request;
    changed.mixing = bad;
    EXPECT_THAT(refusal(changed), HasSubstr("sync.mixing = "));
  }
  for (const double bad : {1.0, -0.1, nan, infinity}) {
    PolicyRequest changed = request;
    changed.outer_momentum = bad;
    EXPECT_THAT(refusal(changed), HasSubstr("sync.outer_momentum = "));
  }
  request.mixing = 1.01;
  EXPECT_THAT(refusal(request), HasSubstr("sync.mixing = 1.01"));
}

TEST(Policy, refuses_an_unstable_outer_step_only_for_a_curvature_that_is_given) {
  PolicyRequest request{.strategy = Strategy::diloco, .period = 3, .workers = 4, .momentum = 0.9};
  const PolicyVerdict assumed = accept(request);
  ASSERT_EQ(assumed.warnings.size(), 1U);
  EXPECT_THAT(assumed.warnings[0], AllOf(HasSubstr("unstable"), HasSubstr("assumed")));
  request.curvature = 20.0;  // lr*L = 1
  EXPECT_THAT(refusal(request), AllOf(HasSubstr("unstable"), HasSubstr("sync.outer_momentum")));
}

TEST(Policy, says_which_keys_belong_to_another_strategy) {
  PolicyRequest request{.workers = 4};
  request.outer_lr = 0.5;
  request.mixing = 0.5;
  const PolicyVerdict interleaved = accept(request);
  ASSERT_EQ(interleaved.warnings.size(), 2U);
  EXPECT_THAT(
      interleaved.warnings[0], AllOf(HasSubstr("sync.outer_lr = 0.5"), HasSubstr("diloco")));
  EXPECT_THAT(interleaved.warnings[1], HasSubstr("sync.mixing = 0.5"));
  request = {.strategy = Strategy::diloco, .workers = 4, .alpha = 0.5};
  request.outer_momentum = 0.0;
  const PolicyVerdict diloco = accept(request);
  ASSERT_EQ(diloco.warnings.size(), 1U);
  EXPECT_THAT(diloco.warnings[0], HasSubstr("sync.alpha and sync.beta have no effect"));
}

TEST(Policy, refuses_values_out_of_range_by_name) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal({.workers = 0}), HasSubstr("cluster.workers = 0"));
  EXPECT_THAT(refusal({.period = 0}), HasSubstr("sync.period = 0"));
  EXPECT_THAT(refusal({.learning_rate = 0.0}), HasSubstr("optimizer.lr = 0"));
  EXPECT_THAT(refusal({.learning_rate = -1.0}), HasSubstr("optimizer.lr = -1"));
  EXPECT_THAT(refusal({.learning_rate = nan}), HasSubstr("optimizer.lr = nan"));
  EXPECT_THAT(refusal({.learning_rate = infinity}), HasSubstr("optimizer.lr = inf"));
  EXPECT_THAT(refusal({.momentum = 1.0}), HasSubstr("optimizer.momentum = 1"));
  EXPECT_THAT(refusal({.momentum = -0.1}), HasSubstr("optimizer.momentum = -0.1"));
  EXPECT_THAT(refusal({.momentum = nan}), HasSubstr("optimizer.momentum = nan"));
  EXPECT_THAT(refusal({.alpha = -0.1}), HasSubstr("sync.alpha = -0.1"));
  EXPECT_THAT(refusal({.alpha = nan}), HasSubstr("sync.alpha = nan"));
  EXPECT_THAT(refusal({.beta = 0.0}), HasSubstr("sync.beta = 0"));
  EXPECT_THAT(refusal({.beta = 2.0}), HasSubstr("sync.beta = 2"));
  EXPECT_THAT(refusal({.beta = nan}), HasSubstr("sync.beta = nan"));
  EXPECT_THAT(refusal({.curvature = 0.0}), HasSubstr("sync.curvature = 0"));
}

TEST(Policy, refuses_alpha_and_beta_whose_sum_reaches_two) {
  EXPECT_THAT(
      refusal({.period = 3, .workers = 4, .alpha = 1.1, .beta = 0.9}),
      AllOf(HasSubstr("sync.alpha = 1.1"), HasSubstr("sync.beta = 0.9"), HasSubstr("below 2")));
  EXPECT_THAT(
      refusal({.rule = UpdateRule::fresh_center, .workers = 4, .alpha = 2.0, .beta = 0.9}),
      HasSubstr("fresh_center"));
}

TEST(Policy, refuses_an_unstable_setting_with_its_spectral_radius_and_a_way_out) {
  // T = 1, lr*L = 1: stable below alpha = 0.55 only.
  const std::string detail = refusal({.period = 1, .workers = 4, .alpha = 0.6});
  EXPECT_THAT(detail, HasSubstr("sync.alpha = 0.6, sync.beta = 0.9"));
  EXPECT_THAT(detail, HasSubstr("spectral radius 1.06394"));
  EXPECT_THAT(detail, HasSubstr("assumed: sync.curvature is not set"));
  EXPECT_THAT(detail, HasSubstr("below 0.55 is stable for certain"));
  accept({.period = 1, .workers = 4, .alpha = 0.5499});
}

TEST(Policy, warns_where_the_radius_is_below_one_without_a_proof) {
  const PolicyVerdict verdict = accept({.period = 3, .workers = 4, .alpha = 0.7});
  ASSERT_EQ(verdict.warnings.size(), 1U);
  EXPECT_THAT(
      verdict.warnings[0],
      AllOf(HasSubstr("sync.alpha = 0.7"), HasSubstr("spectral radius is 0."), HasSubstr("weak")));
}

TEST(Policy, warns_that_no_proof_covers_momentum) {
  const PolicyVerdict verdict = accept({.period = 3, .workers = 4, .momentum = 0.9});
  ASSERT_EQ(verdict.warnings.size(), 1U);
  EXPECT_THAT(verdict.warnings[0], HasSubstr("optimizer.momentum = 0.9"));
  EXPECT_THAT(
      refusal({.period = 3, .workers = 4, .alpha = 0.7, .momentum = 0.9}),
      HasSubstr("lower sync.alpha"));
}

TEST(Policy, goes_by_the_users_curvature) {
  const PolicyRequest request{.period = 1, .workers = 2, .learning_rate = 0.1};
  PolicyRequest flat = request;
  flat.curvature = 5.0;  // lr*L = 0.5
  EXPECT_THAT(accept(flat).warnings, IsEmpty());
  PolicyRequest steep = request;
  steep.curvature = 15.0;  // lr*L = 1.5: alpha below 0.275
  EXPECT_THAT(refusal(steep), HasSubstr("sync.curvature = 15"));
}

TEST(Policy, refuses_a_learning_rate_past_the_curvature_with_every_strategy) {
  for (const Strategy strategy :
       {Strategy::interleaved,
        Strategy::easgd,
        Strategy::local_sgd,
        Strategy::diloco,
        Strategy::bsp}) {
    EXPECT_THAT(
        refusal({.strategy = strategy, .workers = 4, .learning_rate = 0.1, .curvature = 21.0}),
        HasSubstr("lower optimizer.lr below 2/sync.curvature = 0.095"))
        << to_string(strategy);
  }
}

TEST(Policy, warns_when_less_than_half_of_the_learning_rate_is_left) {
  const PolicyVerdict verdict = accept({.period = 3, .workers = 4, .alpha = 0.31, .beta = 0.3});
  EXPECT_NEAR(verdict.effective_learning_rate_share, 0.3 / 0.61, 1e-12);
  ASSERT_EQ(verdict.warnings.size(), 1U);
  EXPECT_THAT(verdict.warnings[0], HasSubstr("effective learning rate is 0.492"));
  EXPECT_THAT(accept({.workers = 4, .alpha = 0.3, .beta = 0.3}).warnings, IsEmpty());
}

TEST(Policy, warns_when_nothing_draws_the_workers_together) {
  ASSERT_EQ(accept({.workers = 4, .alpha = 0.0}).warnings.size(), 1U);
  EXPECT_THAT(accept({.workers = 1, .alpha = 0.0}).warnings, IsEmpty());
}

TEST(Policy, names_read_back) {
  for (const Strategy strategy :
       {Strategy::interleaved,
        Strategy::easgd,
        Strategy::local_sgd,
        Strategy::diloco,
        Strategy::bsp}) {
    EXPECT_EQ(parse_strategy(to_string(strategy)), strategy);
  }
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    EXPECT_EQ(parse_update_rule(to_string(rule)), rule);
  }
  EXPECT_EQ(parse_admission("none"), Admission::none);
  EXPECT_EQ(parse_admission("slots"), Admission::slots);
  EXPECT_EQ(parse_admission("Slots"), std::nullopt);
  EXPECT_EQ(parse_strategy(""), std::nullopt);
  for (const PhaseRule phase :
       {PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level}) {
    EXPECT_EQ(parse_phase_rule(to_string(phase)), phase);
  }
  EXPECT_EQ(parse_phase_rule("levels"), std::nullopt);
}

}  // namespace
}  // namespace stagger
