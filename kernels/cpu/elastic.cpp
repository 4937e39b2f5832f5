#include "kernels/elastic.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "observability/check.hpp"

// Plain loops over __restrict pointers: with -O3 the compiler turns each into full vectors.
// Branches that hold for the whole span are taken outside, because a branch inside would cost the
// vector.
namespace stagger::cpu {

namespace {

using Out = float* __restrict;
using In = const float* __restrict;

void check_velocity(std::span<const float> velocity, std::size_t count, const SgdConstants& sgd) {
  if (velocity.empty()) {
    CHECK(sgd.momentum == 0.0F || count == 0, "momentum without velocity", sgd.momentum);
  } else {
    CHECK_EQ(velocity.size(), count);
  }
}

}  // namespace

void sgd_step(
    std::span<float> w, std::span<const float> grad, std::span<float> velocity, SgdConstants sgd) {
  CHECK_EQ(w.size(), grad.size());
  check_velocity(velocity, w.size(), sgd);
  const Out values = w.data();
  const In gradients = grad.data();
  const Out velocities = velocity.data();
  const std::size_t count = w.size();
  if (velocity.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      const float direction = gradients[i] + sgd.weight_decay * values[i];
      values[i] = values[i] - sgd.learning_rate * direction;
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float direction =
        sgd.momentum * velocities[i] + (gradients[i] + sgd.weight_decay * values[i]);
    velocities[i] = direction;
    values[i] = values[i] - sgd.learning_rate * direction;
  }
}

void sgd_elastic_step(
    std::span<float> w,
    std::span<const float> grad,
    std::span<float> velocity,
    std::span<const float> center,
    SgdConstants sgd,
    float alpha) {
  CHECK_EQ(w.size(), grad.size());
  CHECK_EQ(w.size(), center.size());
  check_velocity(velocity, w.size(), sgd);
  const Out values = w.data();
  const In gradients = grad.data();
  const Out velocities = velocity.data();
  const In centers = center.data();
  const std::size_t count = w.size();
  if (velocity.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      const float direction = gradients[i] + sgd.weight_decay * values[i];
      values[i] = (values[i] - sgd.learning_rate * direction) - alpha * (values[i] - centers[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float direction =
        sgd.momentum * velocities[i] + (gradients[i] + sgd.weight_decay * values[i]);
    velocities[i] = direction;
    values[i] = (values[i] - sgd.learning_rate * direction) - alpha * (values[i] - centers[i]);
  }
}

void elastic_pull(
    std::span<float> w, std::span<const float> pushed, std::span<const float> center, float alpha) {
  CHECK_EQ(w.size(), pushed.size());
  CHECK_EQ(w.size(), center.size());
  const Out values = w.data();
  const In before = pushed.data();
  const In centers = center.data();
  const std::size_t count = w.size();
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = values[i] - alpha * (before[i] - centers[i]);
  }
}

void elastic_mix(std::span<float> w, std::span<const float> center, float alpha) {
  CHECK_EQ(w.size(), center.size());
  if (alpha == 1.0F) {
    std::copy(center.begin(), center.end(), w.begin());
    return;
  }
  const Out values = w.data();
  const In centers = center.data();
  const float keep = 1.0F - alpha;
  const std::size_t count = w.size();
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = keep * values[i] + alpha * centers[i];
  }
}

void accumulate(std::span<float> sum, std::span<const float> x) {
  CHECK_EQ(sum.size(), x.size());
  const Out sums = sum.data();
  const In values = x.data();
  const std::size_t count = sum.size();
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = sums[i] + values[i];
  }
}

void elastic_center(
    std::span<float> sum,
    std::span<const float> center,
    float beta,
    std::size_t present,
    std::size_t workers) {
  CHECK_EQ(sum.size(), center.size());
  CHECK(present <= workers && workers > 0, "present", present, "workers", workers);
  const Out sums = sum.data();
  const In centers = center.data();
  const float all = static_cast<float>(workers);
  const float keep = 1.0F - beta * static_cast<float>(present) / all;
  const std::size_t count = sum.size();
  if (keep == 0.0F) {
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] = beta * sums[i] / all;
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = keep * centers[i] + beta * sums[i] / all;
  }
}

void outer_center(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    OuterConstants outer,
    Attendance attendance) {
  CHECK_EQ(sum.size(), center.size());
  CHECK_EQ(sum.size(), velocity.size());
  const auto [present, workers] = attendance;
  CHECK(present <= workers && present > 0, "present", present, "workers", workers);
  const Out sums = sum.data();
  const In centers = center.data();
  const Out velocities = velocity.data();
  const std::size_t count = sum.size();
  const float all = static_cast<float>(workers);
  const float share = static_cast<float>(present) / all;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = share * centers[i] - sums[i] / all;
    const float moved = outer.momentum * velocities[i] + d;
    velocities[i] = moved;
    sums[i] = centers[i] - outer.learning_rate * (d + outer.momentum * moved);
  }
}

void mean_gradient_step(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    SgdConstants sgd,
    std::size_t present) {
  CHECK_EQ(sum.size(), center.size());
  CHECK_LT(0U, present);
  check_velocity(velocity, sum.size(), sgd);
  const Out sums = sum.data();
  const In centers = center.data();
  const Out velocities = velocity.data();
  const float contributors = static_cast<float>(present);
  const std::size_t count = sum.size();
  if (velocity.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      const float direction = sums[i] / contributors + sgd.weight_decay * centers[i];
      sums[i] = centers[i] - sgd.learning_rate * direction;
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float direction =
        sgd.momentum * velocities[i] + (sums[i] / contributors + sgd.weight_decay * centers[i]);
    velocities[i] = direction;
    sums[i] = centers[i] - sgd.learning_rate * direction;
  }
}

bool all_finite(std::span<const float> x) {
  // Blocks: inside one the loop has no exit and becomes vectors; between two a bad value ends the
  // search.
  constexpr std::size_t block = 4096;
  constexpr std::uint32_t exponent = 0x7F800000U;
  for (std::size_t begin = 0; begin < x.size(); begin += block) {
    const std::span<const float> part = x.subspan(begin, std::min(block, x.size() - begin));
    const In values = part.data();
    const std::size_t count = part.size();
    std::uint32_t bad = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]) & exponent;
      bad |= bits == exponent ? 1U : 0U;
    }
    if (bad != 0) return false;
  }
  return true;
}

}  // namespace stagger::cpu
