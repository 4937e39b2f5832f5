#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <xtensor/xadapt.hpp>
#include <xtensor/xtensor.hpp>

#include "observability/check.hpp"

/// Spans seen as xtensor expressions: borrowed, row major, never copied.
namespace stagger {

/// `as_tensor(values, std::array{batch, classes})`. REQUIRES the extents' product to be the span's
/// size.
template <class Value, std::size_t Rank>
auto as_tensor(std::span<Value> values, const std::array<std::size_t, Rank>& shape) {
  std::size_t product = 1;
  for (const std::size_t extent : shape) {
    product *= extent;
  }
  CHECK_EQ(product, values.size());
  return xt::adapt(values.data(), values.size(), xt::no_ownership(), shape);
}

}  // namespace stagger
