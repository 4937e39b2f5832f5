#include "tensor/xt.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

namespace stagger {
namespace {

TEST(AsTensor, is_a_view_of_the_span_in_row_major_order) {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  auto matrix = as_tensor(std::span(values), std::array<std::size_t, 2>{2, 3});
  EXPECT_EQ(matrix(0, 2), 2.0F);
  EXPECT_EQ(matrix(1, 0), 3.0F);
  matrix(1, 2) = 9.0F;
  EXPECT_EQ(values[5], 9.0F);
  xt::row(matrix, 0) *= 2.0F;
  EXPECT_EQ(values, (std::vector<float>{0, 2, 4, 3, 4, 9}));
}

TEST(AsTensor, takes_part_in_expressions_over_constant_memory) {
  const std::vector<float> values{1, 2, 3, 4};
  const auto matrix = as_tensor(std::span(values), std::array<std::size_t, 2>{2, 2});
  const xt::xtensor<float, 1> sums = xt::sum(matrix, {1});
  EXPECT_EQ(sums(0), 3.0F);
  EXPECT_EQ(sums(1), 7.0F);
}

TEST(AsTensorDeathTest, refuses_extents_that_are_not_the_spans) {
  std::vector<float> values(6);
  EXPECT_DEATH(as_tensor(std::span(values), std::array<std::size_t, 2>{2, 2}), "CHECK failed");
}

}  // namespace
}  // namespace stagger
