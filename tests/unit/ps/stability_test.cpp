#include "ps/stability.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr std::size_t workers = 3;
constexpr std::size_t states = 2 * workers + 2;  ///< replicas, momenta, center, its momentum
using State = std::array<double, states>;
using Map = std::array<State, states>;  ///< columns

/// The rules as the specification writes them, on workers that see the loss h/2*w^2.
void step(State& state, const StabilityQuery& query, double lr_h, bool exchanges) {
  double& center = state[2 * workers];
  State before = state;
  double mean_before = 0.0;
  double mean_after = 0.0;
  for (std::size_t k = 0; k < workers; ++k) {
    state[workers + k] = query.momentum * before[workers + k] - lr_h * before[k];
    state[k] += state[workers + k];
    mean_before += before[k] / static_cast<double>(workers);
    mean_after += state[k] / static_cast<double>(workers);
  }
  if (!exchanges) return;
  const double center_before = center;
  const double mean = query.rule == UpdateRule::post_step ? mean_after : mean_before;
  double& outer = state[2 * workers + 1];
  outer = query.outer_momentum * outer + (center - mean);
  center -= query.beta * (center - mean + query.outer_momentum * outer);
  for (std::size_t k = 0; k < workers; ++k) {
    switch (query.rule) {
      case UpdateRule::old_center:
        state[k] -= query.alpha * (before[k] - center_before);
        break;
      case UpdateRule::fresh_center:
        state[k] -= query.alpha * (before[k] - center);
        break;
      case UpdateRule::post_step:
        state[k] -= query.alpha * (state[k] - center);
        break;
    }
  }
}

Map simulate_period(const StabilityQuery& query, double lr_h) {
  Map map{};
  for (std::size_t column = 0; column < states; ++column) {
    map[column][column] = 1.0;
    for (std::uint32_t iteration = 1; iteration <= query.period; ++iteration) {
      step(map[column], query, lr_h, iteration == query.period);
    }
  }
  return map;
}

/// Growth per period over 2^30 periods, from the simulated map alone.
double simulated_radius(const StabilityQuery& query, double lr_h) {
  Map map = simulate_period(query, lr_h);
  double log_radius = 0.0;
  double weight = 1.0;
  for (int doubling = 0; doubling <= 30; ++doubling) {
    double norm = 0.0;
    for (const State& column : map) {
      for (const double value : column)
        norm = std::max(norm, std::abs(value));
    }
    if (norm == 0.0) return 0.0;
    log_radius += weight * std::log(norm);
    weight /= 2;
    Map square{};
    for (std::size_t column = 0; column < states; ++column) {
      for (std::size_t k = 0; k < states; ++k) {
        for (std::size_t row = 0; row < states; ++row) {
          square[column][row] += map[k][row] / norm * (map[column][k] / norm);
        }
      }
    }
    map = square;
  }
  return std::exp(log_radius);
}

/// Largest alpha, to 1e-4, that is stable on the grid of the published table: 200 curvatures up to
/// the largest.
double largest_stable_alpha(StabilityQuery query, double lr_h_max) {
  const auto stable = [&](double alpha) {
    query.alpha = alpha;
    for (int point = 1; point <= 200; ++point) {
      if (spectral_radius(query, lr_h_max * point / 200) >= 1) return false;
    }
    return true;
  };
  double low = 0.0;
  double high = 3.0;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (stable(middle) ? low : high) = middle;
  }
  return low;
}

TEST(Stability, agrees_with_a_direct_simulation_of_each_rule) {
  int compared = 0;
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    for (const std::uint32_t period : {1U, 2U, 3U, 4U, 7U}) {
      for (const double momentum : {0.0, 0.5, 0.9}) {
        for (const double alpha : {0.1, 0.225, 0.45, 1.3}) {
          for (const double lr_h : {0.01, 0.3, 0.7, 1.0, 1.6, 2.1}) {
            const StabilityQuery query{
                .rule = rule, .alpha = alpha, .beta = 0.8, .period = period, .momentum = momentum};
            EXPECT_NEAR(spectral_radius(query, lr_h), simulated_radius(query, lr_h), 1e-6)
                << to_string(rule) << " T=" << period << " momentum=" << momentum
                << " alpha=" << alpha << " lr*h=" << lr_h;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 3 * 5 * 3 * 4 * 6);
}

TEST(Stability, agrees_with_a_direct_simulation_of_outer_nesterov_steps) {
  for (const std::uint32_t period : {1U, 2U, 3U, 8U}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const double mixing : {0.3, 1.0}) {
        for (const double outer_momentum : {0.3, 0.9}) {
          for (const double lr_h : {0.01, 0.3, 1.0, 1.6}) {
            const StabilityQuery query{
                .rule = UpdateRule::post_step,
                .alpha = mixing,
                .beta = 0.7,
                .period = period,
                .momentum = momentum,
                .outer_momentum = outer_momentum};
            EXPECT_NEAR(spectral_radius(query, lr_h), simulated_radius(query, lr_h), 1e-6)
                << "T=" << period << " momentum=" << momentum << " mixing=" << mixing
                << " outer momentum=" << outer_momentum << " lr*h=" << lr_h;
          }
        }
      }
    }
  }
  const StabilityQuery proven{.rule = UpdateRule::post_step, .alpha = 1.0, .beta = 0.7};
  StabilityQuery unproven = proven;
  unproven.outer_momentum = 0.1;
  EXPECT_TRUE(certified_stable(proven, 1.0));
  EXPECT_FALSE(certified_stable(unproven, 1.0));
}

TEST(Stability, has_the_published_largest_alphas_for_beta_of_nine_tenths) {
  struct Row {
    double lr_h_max;
    std::array<double, 5> alphas;
  };

  constexpr std::array<std::uint32_t, 5> periods{1, 2, 3, 4, 8};
  const std::vector<Row> rows{
      {.lr_h_max = 0.1, .alphas = {1.045, 1.100, 1.100, 1.101, 1.102}},
      {.lr_h_max = 0.5, .alphas = {0.825, 1.100, 1.101, 1.103, 1.108}},
      {.lr_h_max = 1.0, .alphas = {0.550, 1.100, 1.103, 1.106, 1.117}},
      {.lr_h_max = 1.5, .alphas = {0.275, 1.100, 1.104, 1.108, 1.126}},
      {.lr_h_max = 1.9, .alphas = {0.055, 0.211, 0.184, 0.472, 1.133}}};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < periods.size(); ++column) {
      const StabilityQuery query{.beta = 0.9, .period = periods[column]};
      EXPECT_NEAR(largest_stable_alpha(query, row.lr_h_max), row.alphas[column], 1.5e-3)
          << "lr*h up to " << row.lr_h_max << ", T=" << periods[column];
    }
  }
}

TEST(Stability, has_the_published_largest_alphas_for_beta_of_a_half) {
  constexpr std::array<std::uint32_t, 5> periods{1, 2, 3, 4, 8};
  constexpr std::array<double, 5> alphas{0.75, 1.5, 1.504, 1.508, 1.523};
  for (std::size_t column = 0; column < periods.size(); ++column) {
    const StabilityQuery query{.beta = 0.5, .period = periods[column]};
    EXPECT_NEAR(largest_stable_alpha(query, 1.0), alphas[column], 1.5e-3) << periods[column];
  }
}

/// Made with NumPy's eigenvalues on grids of 50, 200 and 1000 curvatures, which agree.
TEST(Stability, has_an_independent_solvers_largest_alphas_under_momentum) {
  constexpr std::array<std::uint32_t, 5> periods{1, 2, 3, 4, 8};
  constexpr std::array<double, 5> alphas{0.811, 0.557, 0.629, 0.820, 0.910};
  for (std::size_t column = 0; column < periods.size(); ++column) {
    const StabilityQuery query{.beta = 0.9, .period = periods[column], .momentum = 0.9};
    EXPECT_NEAR(largest_stable_alpha(query, 1.0), alphas[column], 1e-3) << periods[column];
  }
}

TEST(Stability, of_plain_averaging_before_the_step_ends_where_theory_says) {
  // fresh_center with alpha = beta = 1: the disagreement lr*h*|1 - lr*h|^(T-1) must stay below 1.
  const std::array<double, 3> ends{1.0, 1.618034, 1.754878};
  for (std::uint32_t period = 1; period <= 3; ++period) {
    const StabilityQuery query{
        .rule = UpdateRule::fresh_center, .alpha = 1.0, .beta = 1.0, .period = period};
    EXPECT_LT(spectral_radius(query, ends[period - 1] - 1e-4), 1.0) << period;
    EXPECT_GT(spectral_radius(query, ends[period - 1] + 1e-4), 1.0) << period;
  }
}

TEST(Stability, of_the_papers_rule_with_alpha_and_beta_one_is_lost_at_the_golden_ratio) {
  const StabilityQuery query{.alpha = 1.0, .beta = 1.0, .period = 1};
  EXPECT_NEAR(spectral_radius(query, 1.0), (1 + std::sqrt(5.0)) / 2, 1e-12);
}

TEST(Stability, follows_the_slow_mode_that_the_exchange_conserves) {
  // Per iteration the slow mode decays at lr*h*beta/(alpha + beta), whatever T.
  const StabilityQuery query{.alpha = 0.225, .beta = 0.9, .period = 3};
  const double lr_h = 1e-4;
  const double rate = (1 - std::pow(spectral_radius(query, lr_h), 1.0 / 3)) / lr_h;
  EXPECT_NEAR(rate, 0.8, 1e-3);
}

TEST(Stability, is_the_same_map_with_no_momentum_and_almost_none) {
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    StabilityQuery query{.rule = rule, .alpha = 0.3, .beta = 0.7, .period = 4};
    const double plain = spectral_radius(query, 0.6);
    query.momentum = 1e-300;
    EXPECT_NEAR(spectral_radius(query, 0.6), plain, 1e-9) << to_string(rule);
  }
}

TEST(Stability, of_an_exploding_map_is_not_below_one_however_long_the_period) {
  StabilityQuery query{.alpha = 0.2, .beta = 0.9, .period = 1'000'000};
  EXPECT_GT(spectral_radius(query, 2.5), 1.0);
  query.momentum = 0.9;
  EXPECT_GT(spectral_radius(query, 4.5), 1.0);
}

TEST(Stability, maximum_finds_the_worst_curvature) {
  // With T = 1 the radius grows towards the largest curvature once alpha is past the certificate.
  const StabilityQuery query{.alpha = 0.6, .beta = 0.9, .period = 1};
  EXPECT_NEAR(spectral_radius_max(query, 1.0), spectral_radius(query, 1.0), 1e-12);
  EXPECT_GT(spectral_radius_max(query, 1.0), 1.0);
  EXPECT_LT(spectral_radius_max(query, 0.5), 1.0);
}

TEST(Stability, certificate_is_the_published_bound) {
  struct Bound {
    double lr_h;
    double alpha;
  };

  const std::array<Bound, 5> bounds{
      Bound{.lr_h = 0.1, .alpha = 1.045},
      Bound{.lr_h = 0.5, .alpha = 0.825},
      Bound{.lr_h = 1.0, .alpha = 0.550},
      Bound{.lr_h = 1.5, .alpha = 0.275},
      Bound{.lr_h = 1.9, .alpha = 0.055}};
  for (const Bound& bound : bounds) {
    EXPECT_TRUE(certified_stable({.alpha = bound.alpha - 1e-9, .beta = 0.9}, bound.lr_h));
    EXPECT_FALSE(certified_stable({.alpha = bound.alpha + 1e-9, .beta = 0.9}, bound.lr_h));
  }
}

TEST(Stability, certificate_of_fresh_center_minds_the_disagreement) {
  // The mean feels alpha*(1 - beta), which would allow alpha up to 5.5; the workers' disagreement
  // feels all of alpha.
  const StabilityQuery query{.rule = UpdateRule::fresh_center, .alpha = 1.2, .beta = 0.9};
  EXPECT_GT(spectral_radius(query, 1.0), 1.0);
  EXPECT_FALSE(certified_stable(query, 1.0));
  EXPECT_TRUE(certified_stable({.rule = UpdateRule::fresh_center, .alpha = 0.9, .beta = 0.9}, 1.0));
}

TEST(Stability, certificate_of_post_step_needs_the_learning_rate_alone) {
  const StabilityQuery query{.rule = UpdateRule::post_step, .alpha = 1.0, .beta = 1.0};
  EXPECT_TRUE(certified_stable(query, 1.999));
  EXPECT_FALSE(certified_stable(query, 2.0));
  EXPECT_FALSE(certified_stable({.rule = UpdateRule::post_step, .alpha = 1.01, .beta = 1.0}, 1.0));
}

TEST(Stability, is_never_certified_under_momentum) {
  EXPECT_FALSE(certified_stable({.alpha = 0.1, .beta = 0.9, .momentum = 0.5}, 0.1));
}

}  // namespace
}  // namespace stagger
