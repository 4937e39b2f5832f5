#include "engine/replay_backend.hpp"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

std::vector<LayerProfile> profile() {
  return {
      {.name = "a", .parameters = 1000, .bytes = 4000, .forward = 10us, .backward = 25us},
      {.name = "relu", .parameters = 0, .bytes = 0, .forward = 1us, .backward = 2us},
      {.name = "b", .parameters = 3, .bytes = 12, .forward = 5us, .backward = 0us}};
}

/// A backend with its memory.
struct Replica {
  explicit Replica(ReplayBackend::Options options = {})
      : architecture("p", profile()), backend(architecture, profile(), options) {
    backend.bind(values, gradients);
  }

  /// All gradients after an iteration.
  std::vector<float> iterate(std::uint64_t iteration, std::uint32_t rank) {
    backend.load(Iteration(iteration), WorkerId(rank));
    backend.forward({0, 3});
    backend.backward({2, 3});
    backend.backward({0, 2});
    const auto all = gradients.all();
    return {all.begin(), all.end()};
  }

  ReplayArchitecture architecture;
  ReplayBackend backend;
  Arena values{ArenaLayout(architecture.parameters(), {{2, 3}, {0, 2}})};
  Arena gradients{values.layout()};
};

TEST(ReplayBackend, takes_the_sum_of_the_layers_times) {
  Replica replica;
  replica.backend.load(Iteration(1), WorkerId(0));
  EXPECT_EQ(replica.backend.layers(), 3U);
  EXPECT_EQ(replica.backend.forward_time({0, 3}), 16us);
  EXPECT_EQ(replica.backend.forward_time({1, 2}), 1us);
  EXPECT_EQ(replica.backend.backward_time({0, 3}), 27us);
  EXPECT_EQ(replica.backend.backward_time({2, 3}), 0us);
}

TEST(ReplayBackend, counts_its_batch_as_samples) {
  Replica replica({.batch = 17});
  EXPECT_EQ(replica.backend.load(Iteration(1), WorkerId(0)), 17U);
}

TEST(ReplayBackend, has_gradients_that_depend_on_iteration_rank_layer_and_seed_alone) {
  const auto reference = Replica().iterate(3, 1);
  Replica other;
  other.iterate(2, 0);
  EXPECT_EQ(other.iterate(3, 1), reference);
  EXPECT_NE(other.iterate(4, 1), reference);
  EXPECT_NE(other.iterate(3, 2), reference);
  EXPECT_NE(Replica({.seed = 2}).iterate(3, 1), reference);
}

TEST(ReplayBackend, has_a_finite_gradient_everywhere_and_a_different_one_in_most_places) {
  Replica replica;
  replica.iterate(1, 0);
  std::set<float> seen;
  for (const float value : replica.gradients.parameter(0)) {
    EXPECT_TRUE(std::isfinite(value));
    seen.insert(value);
  }
  EXPECT_GT(seen.size(), 990U);
}

TEST(ReplayBackend, stretches_an_iteration_by_jitter_of_its_rank_and_iteration) {
  Replica replica({.jitter = 0.5});
  std::set<Duration> times;
  for (const std::uint32_t rank : {0U, 1U}) {
    for (const std::uint64_t iteration : {1U, 2U}) {
      replica.backend.load(Iteration(iteration), WorkerId(rank));
      const Duration time = replica.backend.forward_time({0, 3});
      EXPECT_GE(time, 16us);
      EXPECT_LE(time, 24us);
      times.insert(time);
      replica.backend.load(Iteration(9), WorkerId(9));
      replica.backend.load(Iteration(iteration), WorkerId(rank));
      EXPECT_EQ(replica.backend.forward_time({0, 3}), time);
    }
  }
  EXPECT_EQ(times.size(), 4U);
}

}  // namespace
}  // namespace stagger
