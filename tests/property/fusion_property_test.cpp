#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "kernels/rng.hpp"
#include "ps/fusion.hpp"
#include "ps/grouping.hpp"

namespace stagger {
namespace {

/// Times in whole microseconds, so that sums are exact.
class Instances {
 public:
  explicit Instances(std::uint64_t seed) : random_(seed, fnv1a("fusion")) {}

  std::uint64_t below(std::uint64_t count) {
    return std::min<std::uint64_t>(
        static_cast<std::uint64_t>(random_.uniform() * static_cast<float>(count)), count - 1);
  }

  std::vector<FusionUnit> units(std::size_t count) {
    std::vector<FusionUnit> units(count);
    Duration ready{0};
    for (FusionUnit& unit : units) {
      ready += below(10) * 1us;
      unit = {.ready = ready, .bytes = 1 + below(20)};
    }
    return units;
  }

  LinkCost link() {
    return {.start = below(8) * 1us, .seconds_per_byte = 0.25e-6 * static_cast<double>(below(8))};
  }

 private:
  RandomSequence random_;
};

double end_of(const std::vector<FusionUnit>& units, const Cuts& cuts, const LinkCost& link) {
  return score_cuts(units, cuts, link, {}).end_ns;
}

TEST(FusionProperty, optimal_never_ends_after_the_greedy_merge_in_10000_instances) {
  Instances instances(1);
  int better = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto units = instances.units(1 + instances.below(30));
    const LinkCost link = instances.link();
    const double greedy = end_of(units, merge_greedily(units, link), link);
    const double optimal = end_of(units, merge_optimally(units, link), link);
    ASSERT_LE(optimal, greedy) << i;
    better += optimal < greedy ? 1 : 0;
  }
  EXPECT_GT(better, 100);  // the comparison is not one of equals
}

TEST(FusionProperty, optimal_ends_as_early_as_the_best_of_all_cuts) {
  Instances instances(2);
  for (int i = 0; i < 1'000; ++i) {
    const auto units = instances.units(1 + instances.below(10));
    const LinkCost link = instances.link();
    double best = end_of(units, {units.size()}, link);
    for (std::size_t mask = 0; mask < (std::size_t{1} << (units.size() - 1)); ++mask) {
      Cuts cuts;
      for (std::size_t unit = 1; unit < units.size(); ++unit) {
        if (((mask >> (unit - 1)) & 1U) != 0) cuts.push_back(unit);
      }
      cuts.push_back(units.size());
      best = std::min(best, end_of(units, cuts, link));
    }
    ASSERT_EQ(end_of(units, merge_optimally(units, link), link), best) << i;
  }
}

std::vector<LayerProfile> layers_of(Instances& instances, std::size_t count) {
  std::vector<LayerProfile> layers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t parameters = 1 + instances.below(100'000);
    layers.push_back(
        {.name = "layer",
         .parameters = parameters,
         .bytes = 4 * parameters,
         .forward = instances.below(500) * 1us,
         .backward = instances.below(1'000) * 1us});
  }
  return layers;
}

/// What group_layers makes, back in units of one layer each.
Cuts cuts_of(const std::vector<GroupRange>& groups, std::size_t layers) {
  Cuts cuts;
  for (const GroupRange& group : groups)
    cuts.push_back(layers - group.layers.begin);
  return cuts;
}

TEST(FusionProperty, optimal_over_a_period_is_never_worse_than_the_greedy_merge_or_count) {
  Instances instances(3);
  for (int i = 0; i < 200; ++i) {
    const auto layers = layers_of(instances, 1 + instances.below(40));
    GroupingOptions options{
        .planner = GroupPlanner::optimal,
        .period = static_cast<std::uint32_t>(1 + instances.below(6)),
        .phases = instances.below(2) == 0 ? PhaseRule::residue : PhaseRule::level,
        .link = LinkCost{.start = instances.below(400) * 1us, .seconds_per_byte = 4e-9}};
    std::vector<FusionUnit> units;
    Duration ready{0};
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      ready += layer->backward;
      units.push_back({.ready = ready, .bytes = layer->bytes});
    }
    const PhaseOptions phases{.rule = options.phases, .period = options.period};
    const auto score = [&](GroupPlanner planner) {
      options.planner = planner;
      const Cuts cuts = cuts_of(group_layers(layers, options), layers.size());
      return score_cuts(units, cuts, options.link.value_or(LinkCost{}), phases).end_ns;
    };
    const double optimal = score(GroupPlanner::optimal);
    ASSERT_LE(optimal, score(GroupPlanner::mg_wfbp)) << i;
    ASSERT_LE(optimal, score(GroupPlanner::count)) << i;
    ASSERT_LE(optimal, score(GroupPlanner::all)) << i;
  }
}

TEST(FusionProperty, plans_models_of_500_and_2000_layers) {
  for (const std::size_t count : {500U, 2'000U}) {
    for (const std::uint32_t period : {1U, 3U}) {
      Instances instances(count);
      const auto layers = layers_of(instances, count);
      const auto began = std::chrono::steady_clock::now();
      const auto groups = group_layers(
          layers,
          {.planner = GroupPlanner::optimal,
           .period = period,
           .link = LinkCost{.start = 50us, .seconds_per_byte = 4e-9}});
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - began;
      std::printf(
          "%zu layers, T = %u: %zu groups in %.1f ms\n",
          count,
          period,
          groups.size(),
          took.count());
      EXPECT_EQ(groups.front().layers.end, count);
      EXPECT_EQ(groups.back().layers.begin, 0U);
    }
  }
}

}  // namespace
}  // namespace stagger
