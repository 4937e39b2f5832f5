#include "tests/property/quadratic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ps/stability.hpp"

// The theory of stability against the arithmetic that a run executes.
namespace stagger {
namespace {

constexpr std::uint32_t workers = 3;

StabilityQuery query_of(const SyncPolicy& policy, double momentum = 0.0) {
  return {
      .rule = policy.rule,
      .alpha = policy.alpha,
      .beta = policy.beta,
      .period = policy.period,
      .momentum = momentum,
      .outer_momentum = policy.outer_momentum};
}

QuadraticCluster one_coordinate(const SyncPolicy& policy, double lr_h, double momentum) {
  // lr is 1, so that the curvature alone is lr*h.
  const SgdConstants sgd{.learning_rate = 1.0F, .momentum = static_cast<float>(momentum)};
  return {policy, sgd, {1}, std::vector(policy.workers, SquareMatrix{{lr_h}})};
}

void run_period(QuadraticCluster& cluster, const SyncPolicy& policy) {
  for (std::uint32_t j = 1; j <= policy.period; ++j)
    cluster.iterate({j == policy.period}, std::vector<bool>(policy.workers, true));
}

/// Growth per period of the map that a period is, column by column from the unit states: what
/// rounding leaves of it in one period.
double measured_radius(const SyncPolicy& policy, double lr_h, double momentum) {
  const std::size_t states = one_coordinate(policy, lr_h, momentum).state().size();
  SquareMatrix map(states, Vector(states));
  for (std::size_t column = 0; column < states; ++column) {
    QuadraticCluster cluster = one_coordinate(policy, lr_h, momentum);
    Vector unit(states, 0.0);
    unit[column] = 1.0;
    cluster.set_state(unit);
    run_period(cluster, policy);
    const Vector image = cluster.state();
    for (std::size_t row = 0; row < states; ++row)
      map[row][column] = image[row];
  }
  return growth(map);
}

SyncPolicy policy_of(UpdateRule rule, std::uint32_t period, double alpha, double beta) {
  return {.rule = rule, .period = period, .workers = workers, .alpha = alpha, .beta = beta};
}

class Quadratic : public testing::TestWithParam<UpdateRule> {};

TEST_P(Quadratic, contracts_per_period_by_the_spectral_radius) {
  for (const std::uint32_t period : {1U, 2U, 3U, 8U}) {
    for (const double momentum : {0.0, 0.5}) {
      for (const auto& [alpha, beta] : {std::pair(0.25, 0.75), std::pair(0.3, 0.9)}) {
        for (const double lr_h : {0.0625, 0.3, 1.25, 1.6}) {
          const SyncPolicy policy = policy_of(GetParam(), period, alpha, beta);
          const double expected = spectral_radius(query_of(policy, momentum), lr_h);
          EXPECT_NEAR(measured_radius(policy, lr_h, momentum), expected, 1e-6)
              << "T=" << period << " momentum=" << momentum << " alpha=" << alpha
              << " beta=" << beta << " lr*h=" << lr_h;
        }
      }
    }
  }
}

/// A run of floats from 1 downwards, without the linear algebra: a flat direction's slow mode is
/// real, so that the ratio of two late states is the radius itself.
TEST_P(Quadratic, contracts_by_the_spectral_radius_over_a_long_run) {
  for (const std::uint32_t period : {1U, 2U, 3U, 8U}) {
    const SyncPolicy policy = policy_of(GetParam(), period, 0.25, 0.75);
    QuadraticCluster cluster = one_coordinate(policy, 0.0625, 0.0);
    cluster.set_state(Vector(workers + 1, 1.0));
    constexpr int periods = 100;
    for (int i = 0; i < periods; ++i)
      run_period(cluster, policy);
    const double early = cluster.state().back();
    for (int i = 0; i < periods; ++i)
      run_period(cluster, policy);
    const double late = cluster.state().back();
    const double expected = spectral_radius(query_of(policy), 0.0625);
    EXPECT_NEAR(std::pow(late / early, 1.0 / periods), expected, 1e-6) << "T=" << period;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllRules,
    Quadratic,
    testing::Values(UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step),
    [](const auto& tried) { return std::string(to_string(tried.param)); });

TEST(QuadraticOfDiloco, contracts_by_the_spectral_radius_over_a_long_run) {
  struct Case {
    std::uint32_t period;
    double mixing;
    double outer_momentum;
  };

  for (const Case& tried :
       {Case{.period = 1, .mixing = 1.0, .outer_momentum = 0.25},
        Case{.period = 3, .mixing = 0.5, .outer_momentum = 0.25},
        Case{.period = 8, .mixing = 1.0, .outer_momentum = 0.25}}) {
    SyncPolicy policy = policy_of(UpdateRule::post_step, tried.period, tried.mixing, 0.75);
    policy.strategy = Strategy::diloco;
    policy.outer_momentum = tried.outer_momentum;
    constexpr double lr_h = 0.015625;
    QuadraticCluster cluster = one_coordinate(policy, lr_h, 0.0);
    cluster.set_state(Vector(workers + 1, 1.0));
    constexpr int periods = 200;
    for (int i = 0; i < periods; ++i)
      run_period(cluster, policy);
    const double early = cluster.state().back();
    for (int i = 0; i < periods; ++i)
      run_period(cluster, policy);
    const double late = cluster.state().back();
    const double expected = spectral_radius(query_of(policy), lr_h);
    EXPECT_NEAR(std::pow(late / early, 1.0 / periods), expected, 1e-6) << "T=" << tried.period;
  }
}

/// A cluster inside the certificate: dense curvature, of each worker its own, groups of any size.
struct Coupled {
  SyncPolicy policy;
  std::vector<std::size_t> sizes;
  std::vector<SquareMatrix> hessians;
};

Coupled pick_coupled(UpdateRule rule, RandomSequence& random) {
  const auto uniform = [&random](double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform());
  };
  Coupled coupled;
  coupled.policy.rule = rule;
  coupled.policy.workers = 1 + random.below(4);
  std::size_t size = 0;
  const std::uint32_t groups = 1 + random.below(4);
  for (std::uint32_t group = 0; group < groups; ++group) {
    coupled.sizes.push_back(1 + random.below(3));
    size += coupled.sizes.back();
  }
  const double lr_l = uniform(0.1, 1.9);
  const double slack = 2 - lr_l;
  const bool any_beta = rule == UpdateRule::old_center;
  const double beta = any_beta ? uniform(0.05, 1.95) : uniform(0.05, 1.0);
  double limit = (2 - beta) * slack / 2;
  if (rule == UpdateRule::fresh_center) {
    limit = beta < 1 ? std::min(slack, limit / (1 - beta)) : slack;
  }
  if (rule == UpdateRule::post_step) limit = 1.0;
  coupled.policy.alpha = limit * uniform(0.5, 0.999);
  coupled.policy.beta = beta;
  for (std::uint32_t k = 0; k < coupled.policy.workers; ++k)
    coupled.hessians.push_back(random_hessian(size, lr_l, random));
  RC_ASSERT(certified_stable(query_of(coupled.policy), lr_l));
  return coupled;
}

double size_of(const Vector& state) {
  double sum = 0.0;
  for (const double value : state)
    sum += value * value;
  return std::sqrt(sum);
}

/// The norm in which every exchange of old_center is no expansion.
double certificate_norm(const Vector& state, const Coupled& coupled) {
  const std::size_t size = state.size() / (coupled.policy.workers + 1);
  const double weight = coupled.policy.workers * coupled.policy.alpha / coupled.policy.beta;
  Vector scaled = state;
  for (std::size_t i = state.size() - size; i < state.size(); ++i)
    scaled[i] *= std::sqrt(weight);
  return size_of(scaled);
}

std::vector<bool> pick(std::size_t count, RandomSequence& random, std::uint32_t of_eight) {
  std::vector<bool> picked(count);
  for (std::size_t i = 0; i < count; ++i)
    picked[i] = random.below(8) < of_eight;
  return picked;
}

/// Iterations of random groups and, with `absences`, of random workers.
void expect_no_divergence(UpdateRule rule, std::uint64_t seed, bool absences) {
  RandomSequence random(seed, fnv1a("quadratic"));
  const Coupled coupled = pick_coupled(rule, random);
  QuadraticCluster cluster(
      coupled.policy, {.learning_rate = 1.0F}, coupled.sizes, coupled.hessians);
  Vector state = cluster.state();
  for (double& value : state)
    value = 2.0 * static_cast<double>(random.uniform()) - 1.0;
  cluster.set_state(state);
  double before = certificate_norm(state, coupled);
  const double start = size_of(state);
  for (int iteration = 0; iteration < 400; ++iteration) {
    const auto present = pick(coupled.policy.workers, random, absences ? 5 : 8);
    cluster.iterate(pick(cluster.groups(), random, 3), present);
    state = cluster.state();
    RC_ASSERT(size_of(state) < 10 * start);
    if (rule != UpdateRule::old_center) continue;
    const double after = certificate_norm(state, coupled);
    RC_ASSERT(after <= before * (1 + 1e-6) + 1e-30);  // what floats cannot hold
    before = after;
  }
}

constexpr std::uint64_t clusters_per_case = 5;

RC_GTEST_PROP(QuadraticLaws, inside_the_certificate_no_coupling_grouping_or_order_diverges, ()) {
  const auto rule =
      *rc::gen::element(UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  for (std::uint64_t i = 0; i < clusters_per_case; ++i)
    expect_no_divergence(rule, seed + i, false);
}

RC_GTEST_PROP(QuadraticLaws, absent_workers_with_a_fixed_share_each_never_diverge, ()) {
  const auto rule = *rc::gen::element(UpdateRule::old_center, UpdateRule::fresh_center);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  for (std::uint64_t i = 0; i < clusters_per_case; ++i)
    expect_no_divergence(rule, seed + i, true);
}

TEST(QuadraticLaws, tell_a_cluster_outside_the_certificate_from_one_inside) {
  // T = 1, lr*h = 1, beta = 0.9: stable below alpha = 0.55.
  EXPECT_LT(measured_radius(policy_of(UpdateRule::old_center, 1, 0.54, 0.9), 1.0, 0.0), 1.0);
  EXPECT_GT(measured_radius(policy_of(UpdateRule::old_center, 1, 0.56, 0.9), 1.0, 0.0), 1.0);
}

}  // namespace
}  // namespace stagger
