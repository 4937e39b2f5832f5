#include "ps/center.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/rng.hpp"

namespace stagger {
namespace {

constexpr std::size_t chunk_floats = 16;

/// Group 0 (output side) of 40 floats: chunks of 16, 16 and 8; group 1 of 5 floats.
Arena arena() {
  const std::vector<ParameterInfo> parameters{
      {.name = "in", .shape = {5}, .layer = 0}, {.name = "out", .shape = {8, 5}, .layer = 1}};
  Arena values(ArenaLayout(parameters, {{.begin = 1, .end = 2}, {.begin = 0, .end = 1}}));
  RandomSequence random(3, fnv1a("center test"));
  for (std::size_t group = 0; group < 2; ++group) {
    for (float& value : values.group(group))
      value = random.uniform() - 0.5F;
  }
  return values;
}

constexpr RoundId round_at(std::uint64_t iteration) {
  return {.group = GroupId(0), .iteration = Iteration(iteration)};
}

std::vector<float> values_of(std::size_t size, std::uint64_t seed) {
  RandomSequence random(seed, fnv1a("values"));
  std::vector<float> values(size);
  for (float& value : values)
    value = 4.0F * random.uniform() - 2.0F;
  return values;
}

ChunkBuffer buffer_of(Center& center, const std::vector<float>& values) {
  ChunkBuffer buffer = center.pool().acquire();
  std::copy(values.begin(), values.end(), buffer->span().begin());
  return buffer;
}

SyncPolicy elastic(double beta, std::uint32_t workers) {
  SyncPolicy policy;
  policy.beta = beta;
  policy.workers = workers;
  return policy;
}

/// c + beta/K * sum over the present of (x_k - c), in double precision.
std::vector<double> elastic_oracle(
    const Center& center, const std::vector<std::vector<float>>& pushed, const SyncPolicy& policy) {
  std::vector<double> expected;
  const auto c = center.chunk(GroupId(0), 0).span();
  for (std::size_t i = 0; i < c.size(); ++i) {
    double moved = c[i];
    for (const auto& x : pushed) {
      moved += policy.beta / policy.workers * (double{x[i]} - double{c[i]});
    }
    expected.push_back(moved);
  }
  return expected;
}

std::vector<float> sum_of(const std::vector<std::vector<float>>& pushed) {
  std::vector<float> sum = pushed.front();
  for (std::size_t k = 1; k < pushed.size(); ++k) {
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += pushed[k][i];
  }
  return sum;
}

TEST(Center, cuts_groups_into_chunks) {
  const Arena initial = arena();
  const Center center(initial, chunk_floats);
  EXPECT_EQ(center.groups(), 2U);
  EXPECT_EQ(center.chunks(GroupId(0)), 3U);
  EXPECT_EQ(center.chunks(GroupId(1)), 1U);
  EXPECT_EQ(center.chunk_size(GroupId(0), 0), 16U);
  EXPECT_EQ(center.chunk_size(GroupId(0), 2), 8U);
  EXPECT_EQ(center.chunk_size(GroupId(1), 0), 5U);
  EXPECT_EQ(center.chunk(GroupId(0), 1).iteration, Iteration(0));
  EXPECT_EQ(center.chunk(GroupId(0), 1).span()[0], initial.group(0)[16]);
}

TEST(Center, assembles_what_it_was_made_from) {
  const Arena initial = arena();
  const Arena assembled = Center(initial, chunk_floats).assemble();
  EXPECT_TRUE(std::equal(
      initial.all().begin(), initial.all().end(), assembled.all().begin(), assembled.all().end()));
}

TEST(Center, moves_by_beta_towards_the_mean) {
  Center center(arena(), chunk_floats);
  const SyncPolicy policy = elastic(0.9, 3);
  const std::vector pushed{values_of(16, 1), values_of(16, 2), values_of(16, 3)};
  const auto expected = elastic_oracle(center, pushed, policy);
  center.close(
      {.round = round_at(1), .chunk = 0, .present = 3}, policy, buffer_of(center, sum_of(pushed)));
  const auto& chunk = center.chunk(GroupId(0), 0);
  EXPECT_EQ(chunk.iteration, Iteration(1));
  EXPECT_EQ(chunk.present, 3U);
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(chunk.span()[i], expected[i], 1e-6);
}

TEST(Center, divides_by_all_workers_when_some_are_absent) {
  for (const double beta : {0.5, 0.9, 1.0, 1.7}) {
    Center center(arena(), chunk_floats);
    const SyncPolicy policy = elastic(beta, 5);
    const std::vector pushed{values_of(16, 1), values_of(16, 2)};
    const auto expected = elastic_oracle(center, pushed, policy);
    center.close(
        {.round = round_at(1), .chunk = 0, .present = 2},
        policy,
        buffer_of(center, sum_of(pushed)));
    const auto& chunk = center.chunk(GroupId(0), 0);
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(chunk.span()[i], expected[i], 2e-6) << beta;
  }
}

TEST(Center, is_exactly_the_mean_for_beta_one_with_all_present) {
  Center center(arena(), chunk_floats);
  const std::vector pushed{values_of(16, 1), values_of(16, 2)};
  const auto sum = sum_of(pushed);
  center.close(
      {.round = round_at(1), .chunk = 0, .present = 2}, elastic(1.0, 2), buffer_of(center, sum));
  const auto& chunk = center.chunk(GroupId(0), 0);
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(chunk.span()[i], sum[i] / 2.0F);
}

TEST(Center, stays_when_nobody_was_present_and_the_round_still_counts) {
  Center center(arena(), chunk_floats);
  const auto before = center.chunk(GroupId(0), 0).values;
  center.close({.round = round_at(4), .chunk = 0, .present = 0}, elastic(0.9, 2), nullptr);
  const auto& chunk = center.chunk(GroupId(0), 0);
  EXPECT_EQ(chunk.iteration, Iteration(4));
  EXPECT_EQ(chunk.present, 0U);
  EXPECT_EQ(chunk.values, before);
}

TEST(Center, touches_no_other_chunk) {
  const Arena initial = arena();
  Center center(initial, chunk_floats);
  center.close(
      {.round = round_at(1), .chunk = 1, .present = 1},
      elastic(0.9, 1),
      buffer_of(center, values_of(16, 1)));
  const Arena after = center.assemble();
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(initial.group(0)[i] != after.group(0)[i], i >= 16 && i < 32) << i;
  }
  EXPECT_TRUE(std::equal(initial.group(1).begin(), initial.group(1).end(), after.group(1).begin()));
}

TEST(Center, leaves_a_snapshot_alone_while_it_is_held) {
  Center center(arena(), chunk_floats);
  const Center::Snapshot held = center.chunk(GroupId(0), 0);
  const std::vector<float> bytes(held.span().begin(), held.span().end());
  for (std::uint64_t iteration = 1; iteration <= 20; ++iteration) {
    center.close(
        {.round = round_at(iteration), .chunk = 0, .present = 1},
        elastic(0.9, 1),
        buffer_of(center, values_of(16, iteration)));
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), held.span().begin()));
  EXPECT_NE(held.values, center.chunk(GroupId(0), 0).values);
}

TEST(Center, reuses_its_buffers_once_they_are_released) {
  Center center(arena(), chunk_floats);
  const AlignedFloats* first = center.pool().acquire().get();
  EXPECT_EQ(center.pool().acquire().get(), first);
  const ChunkBuffer held = center.pool().acquire();
  EXPECT_NE(center.pool().acquire().get(), held.get());
}

TEST(Center, outlived_by_a_buffer_frees_nothing_twice) {
  ChunkBuffer buffer;
  {
    Center center(arena(), chunk_floats);
    buffer = center.pool().acquire();
  }
  buffer->span()[0] = 1.0F;
  EXPECT_EQ(buffer->span()[0], 1.0F);
}

/// PyTorch's SGD on the mean gradient of those present, in double precision.
TEST(Center, takes_the_step_itself_under_bsp) {
  SyncPolicy policy;
  policy.strategy = Strategy::bsp;
  policy.period = 1;
  policy.workers = 3;
  Center center(arena(), chunk_floats);
  center.set_optimizer({.learning_rate = 0.0F, .momentum = 0.9F, .weight_decay = 0.01F});
  std::vector<double> c(16);
  std::vector<double> velocity(16, 0.0);
  const auto start = center.chunk(GroupId(0), 0).span();
  std::copy(start.begin(), start.end(), c.begin());
  for (std::uint64_t iteration = 1; iteration <= 5; ++iteration) {
    const std::uint32_t present = iteration == 3 ? 2 : 3;
    std::vector<std::vector<float>> pushed;
    for (std::uint32_t k = 0; k < present; ++k)
      pushed.push_back(values_of(16, iteration * 10 + k));
    const double rate = 0.1 / static_cast<double>(iteration);
    for (std::size_t i = 0; i < 16; ++i) {
      double mean = 0.0;
      for (const auto& x : pushed)
        mean += double{x[i]} / present;
      velocity[i] = 0.9 * velocity[i] + mean + 0.01 * c[i];
      c[i] -= rate * velocity[i];
    }
    center.close(
        {.round = round_at(iteration),
         .chunk = 0,
         .present = present,
         .learning_rate = static_cast<float>(rate)},
        policy,
        buffer_of(center, sum_of(pushed)));
    const auto& chunk = center.chunk(GroupId(0), 0);
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(chunk.span()[i], c[i], 1e-5) << iteration;
  }
}

/// PyTorch's SGD with nesterov on the center less the mean, those absent counting as the center, in
/// double precision.
TEST(Center, takes_outer_nesterov_steps_under_diloco) {
  SyncPolicy policy;
  policy.strategy = Strategy::diloco;
  policy.rule = UpdateRule::post_step;
  policy.workers = 3;
  policy.beta = 0.7;
  policy.outer_momentum = 0.9;
  Center center(arena(), chunk_floats);
  std::vector<double> c(16);
  std::vector<double> velocity(16, 0.0);
  const auto start = center.chunk(GroupId(0), 0).span();
  std::copy(start.begin(), start.end(), c.begin());
  for (std::uint64_t iteration = 1; iteration <= 6; ++iteration) {
    const std::uint32_t present = iteration == 3 ? 2 : iteration == 4 ? 0 : 3;
    std::vector<std::vector<float>> pushed;
    for (std::uint32_t k = 0; k < present; ++k)
      pushed.push_back(values_of(16, iteration * 10 + k));
    for (std::size_t i = 0; i < 16 && present > 0; ++i) {
      double d = 0.0;
      for (const auto& x : pushed)
        d += (c[i] - double{x[i]}) / 3;
      velocity[i] = 0.9 * velocity[i] + d;
      c[i] -= 0.7 * (d + 0.9 * velocity[i]);
    }
    center.close(
        {.round = round_at(iteration), .chunk = 0, .present = present},
        policy,
        present > 0 ? buffer_of(center, sum_of(pushed)) : nullptr);
    const auto& chunk = center.chunk(GroupId(0), 0);
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(chunk.span()[i], c[i], 1e-5) << iteration;
  }
}

TEST(CenterDeathTest, closes_a_round_once) {
  Center center(arena(), chunk_floats);
  const auto close = [&center] {
    center.close(
        {.round = round_at(2), .chunk = 0, .present = 1},
        elastic(0.9, 1),
        buffer_of(center, values_of(16, 1)));
  };
  close();
  EXPECT_DEATH(close(), "snapshot.iteration");
  EXPECT_DEATH(Center(arena(), 10), "64-byte lines");
}

}  // namespace
}  // namespace stagger
