#include "kernels/elastic.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/rng.hpp"

namespace stagger {
namespace {

using Values = std::vector<float>;

/// Lengths around every vector width, none, and one beyond the block of all_finite.
const std::vector<std::size_t> lengths{0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 257, 4097};

Values random_values(std::size_t count, std::uint64_t sequence) {
  RandomSequence random(11, sequence);
  Values values(count);
  for (float& value : values) {
    value = 4.0F * random.uniform() - 2.0F;
  }
  return values;
}

void expect_same_bits(const Values& left, const Values& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(left[i]), std::bit_cast<std::uint32_t>(right[i]))
        << "element " << i << ": " << left[i] << " and " << right[i];
  }
}

/// The operands of every kernel at one length; some use only a few of them.
struct Operands {
  explicit Operands(std::size_t count)
      : w(random_values(count, 1)),
        grad(random_values(count, 2)),
        velocity(random_values(count, 3)),
        center(random_values(count, 4)) {}

  Values w, grad, velocity, center;
};

/// Runs the two versions on equal operands, with and without a velocity, and compares whatever they
/// changed.
template <class Reference, class Cpu>
void compare(const Reference& reference, const Cpu& cpu) {
  for (const std::size_t length : lengths) {
    for (const bool momentum : {false, true}) {
      SCOPED_TRACE("length " + std::to_string(length) + (momentum ? ", momentum" : ""));
      Operands expected(length);
      Operands found(length);
      if (!momentum) {
        expected.velocity.clear();
        found.velocity.clear();
      }
      const SgdConstants sgd{
          .learning_rate = 0.07F, .momentum = momentum ? 0.9F : 0.0F, .weight_decay = 3e-3F};
      reference(expected, sgd);
      cpu(found, sgd);
      expect_same_bits(expected.w, found.w);
      expect_same_bits(expected.velocity, found.velocity);
    }
  }
}

TEST(ElasticKernels, sgd_steps_agree_bit_for_bit) {
  compare(
      [](Operands& o, SgdConstants sgd) { reference::sgd_step(o.w, o.grad, o.velocity, sgd); },
      [](Operands& o, SgdConstants sgd) { cpu::sgd_step(o.w, o.grad, o.velocity, sgd); });
}

TEST(ElasticKernels, sgd_elastic_steps_agree_bit_for_bit) {
  compare(
      [](Operands& o, SgdConstants sgd) {
        reference::sgd_elastic_step(o.w, o.grad, o.velocity, o.center, sgd, 0.3F);
      },
      [](Operands& o, SgdConstants sgd) {
        cpu::sgd_elastic_step(o.w, o.grad, o.velocity, o.center, sgd, 0.3F);
      });
}

TEST(ElasticKernels, pulls_agree_bit_for_bit) {
  compare(
      [](Operands& o, SgdConstants) { reference::elastic_pull(o.w, o.grad, o.center, 0.3F); },
      [](Operands& o, SgdConstants) { cpu::elastic_pull(o.w, o.grad, o.center, 0.3F); });
}

TEST(ElasticKernels, mixes_agree_bit_for_bit) {
  for (const float alpha : {0.0F, 0.3F, 1.0F}) {
    compare(
        [alpha](Operands& o, SgdConstants) { reference::elastic_mix(o.w, o.center, alpha); },
        [alpha](Operands& o, SgdConstants) { cpu::elastic_mix(o.w, o.center, alpha); });
  }
}

TEST(ElasticKernels, sums_agree_bit_for_bit) {
  compare(
      [](Operands& o, SgdConstants) { reference::accumulate(o.w, o.grad); },
      [](Operands& o, SgdConstants) { cpu::accumulate(o.w, o.grad); });
}

TEST(ElasticKernels, center_steps_agree_bit_for_bit) {
  for (const float beta : {0.25F, 0.9F, 1.0F}) {
    for (const std::size_t present : {0U, 2U, 3U}) {
      compare(
          [beta, present](Operands& o, SgdConstants) {
            reference::elastic_center(o.w, o.center, beta, present, 3);
          },
          [beta, present](Operands& o, SgdConstants) {
            cpu::elastic_center(o.w, o.center, beta, present, 3);
          });
    }
  }
}

TEST(ElasticKernels, outer_steps_agree_bit_for_bit) {
  for (const std::size_t present : {1U, 2U, 3U}) {
    const Attendance attendance{.present = present, .workers = 3};
    for (const std::size_t length : lengths) {
      Operands expected(length);
      Operands found(length);
      const OuterConstants outer{.learning_rate = 0.7F, .momentum = 0.9F};
      reference::outer_center(expected.w, expected.center, expected.velocity, outer, attendance);
      cpu::outer_center(found.w, found.center, found.velocity, outer, attendance);
      expect_same_bits(expected.w, found.w);
      expect_same_bits(expected.velocity, found.velocity);
    }
  }
}

TEST(ElasticKernels, mean_gradient_steps_agree_bit_for_bit) {
  compare(
      [](Operands& o, SgdConstants sgd) {
        reference::mean_gradient_step(o.w, o.center, o.velocity, sgd, 3);
      },
      [](Operands& o, SgdConstants sgd) {
        cpu::mean_gradient_step(o.w, o.center, o.velocity, sgd, 3);
      });
}

TEST(ElasticKernels, one_step_by_hand) {
  // g = 1 + 0.5*2 = 2; v = 0.5*4 + 2 = 4; step = 0.25*4 = 1; w' = 2 - 1 - 0.5*(2 - 6) = 3.
  Values w{2.0F};
  Values velocity{4.0F};
  const SgdConstants sgd{.learning_rate = 0.25F, .momentum = 0.5F, .weight_decay = 0.5F};
  cpu::sgd_elastic_step(w, Values{1.0F}, velocity, Values{6.0F}, sgd, 0.5F);
  EXPECT_EQ(w[0], 3.0F);
  EXPECT_EQ(velocity[0], 4.0F);

  // The mean of the gradients 1 and 3 is 2, the center 2: g = 3, v = 5, step = 1.25.
  Values sum{4.0F};
  velocity = {4.0F};
  cpu::mean_gradient_step(sum, Values{2.0F}, velocity, sgd, 2);
  EXPECT_EQ(sum[0], 0.75F);
}

TEST(ElasticKernels, one_outer_step_by_hand) {
  // c = 8; 4 and 12 came, two are absent: d = (0.5*8 - 16/4) = 0; v = 0.5*4 = 2; c' = 8 - 0.25*1.
  Values sum{16.0F};
  Values velocity{4.0F};
  const OuterConstants outer{.learning_rate = 0.25F, .momentum = 0.5F};
  cpu::outer_center(sum, Values{8.0F}, velocity, outer, {.present = 2, .workers = 4});
  EXPECT_EQ(velocity[0], 2.0F);
  EXPECT_EQ(sum[0], 7.75F);

  // All came, their mean is 4: d = 4; v = 0.5*2 + 4 = 5; c' = 8 - 0.25*(4 + 2.5).
  sum = {16.0F};
  cpu::outer_center(sum, Values{8.0F}, velocity, outer, {.present = 4, .workers = 4});
  EXPECT_EQ(velocity[0], 5.0F);
  EXPECT_EQ(sum[0], 6.375F);
}

TEST(ElasticKernels, an_absent_worker_leaves_its_share_with_the_center) {
  // c = 8, beta = 0.5, workers 4, of whom two are present with 4 and 12: c' = (1 - 0.25)*8 +
  // 0.125*16.
  Values sum{16.0F};
  cpu::elastic_center(sum, Values{8.0F}, 0.5F, 2, 4);
  EXPECT_EQ(sum[0], 8.0F);

  sum = {0.0F};
  cpu::elastic_center(sum, Values{8.0F}, 0.5F, 0, 4);
  EXPECT_EQ(sum[0], 8.0F) << "nobody present: nothing moves";
}

TEST(ElasticKernels, full_pull_with_everyone_present_is_exactly_the_mean) {
  for (const std::size_t workers : {1U, 2U, 3U, 5U, 7U, 12U}) {
    const std::size_t count = 101;
    Values sum(count, 0.0F);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      cpu::accumulate(sum, random_values(count, 100 + worker));
    }
    Values mean = sum;
    for (float& value : mean) {
      value /= static_cast<float>(workers);
    }
    Values center(count, std::numeric_limits<float>::quiet_NaN());  // must not be read
    cpu::elastic_center(sum, center, 1.0F, workers, workers);
    expect_same_bits(sum, mean);

    Values w(count, std::numeric_limits<float>::infinity());
    cpu::elastic_mix(w, mean, 1.0F);
    expect_same_bits(w, mean);
  }
}

TEST(ElasticKernels, find_a_single_value_that_is_not_finite) {
  for (const std::size_t length : lengths) {
    Values values = random_values(length, 5);
    EXPECT_TRUE(cpu::all_finite(values));
    EXPECT_TRUE(reference::all_finite(values));
    for (std::size_t place = 0; place < length; place += 1 + length / 20) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(),
            std::numeric_limits<float>::signaling_NaN(),
            std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        const float good = values[place];
        values[place] = bad;
        EXPECT_FALSE(cpu::all_finite(values)) << "length " << length << ", place " << place;
        EXPECT_FALSE(reference::all_finite(values));
        values[place] = good;
      }
    }
  }
  EXPECT_TRUE(cpu::all_finite(Values{std::numeric_limits<float>::max(), -0.0F, 1e-45F}));
}

TEST(ElasticKernelsDeathTest, refuse_spans_of_unequal_length) {
  Values w(4);
  const Values other(3);
  EXPECT_DEATH(cpu::accumulate(w, other), "CHECK failed");
  EXPECT_DEATH(cpu::elastic_mix(w, other, 0.5F), "CHECK failed");
  EXPECT_DEATH(
      cpu::sgd_step(w, Values(4), {}, {.learning_rate = 0.1F, .momentum = 0.9F}), "velocity");
}

}  // namespace
}  // namespace stagger
