#include "kernels/elastic.hpp"

#include <cmath>
#include <cstddef>
#include <span>

#include "observability/check.hpp"

namespace stagger::reference {

namespace {

/// One element's step; updates the velocity, if there is one.
float local_step(
    float w, float grad, std::span<float> velocity, std::size_t index, const SgdConstants& sgd) {
  float direction = grad + sgd.weight_decay * w;
  if (!velocity.empty()) {
    direction = sgd.momentum * velocity[index] + direction;
    velocity[index] = direction;
  }
  return sgd.learning_rate * direction;
}

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
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = w[i] - local_step(w[i], grad[i], velocity, i, sgd);
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
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float step = local_step(w[i], grad[i], velocity, i, sgd);
    w[i] = (w[i] - step) - alpha * (w[i] - center[i]);
  }
}

void elastic_pull(
    std::span<float> w, std::span<const float> pushed, std::span<const float> center, float alpha) {
  CHECK_EQ(w.size(), pushed.size());
  CHECK_EQ(w.size(), center.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = w[i] - alpha * (pushed[i] - center[i]);
  }
}

void elastic_mix(std::span<float> w, std::span<const float> center, float alpha) {
  CHECK_EQ(w.size(), center.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = alpha == 1.0F ? center[i] : (1.0F - alpha) * w[i] + alpha * center[i];
  }
}

void accumulate(std::span<float> sum, std::span<const float> x) {
  CHECK_EQ(sum.size(), x.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = sum[i] + x[i];
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
  const float all = static_cast<float>(workers);
  const float keep = 1.0F - beta * static_cast<float>(present) / all;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const float moved = beta * sum[i] / all;
    sum[i] = keep == 0.0F ? moved : keep * center[i] + moved;
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
  const float all = static_cast<float>(workers);
  const float share = static_cast<float>(present) / all;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const float d = share * center[i] - sum[i] / all;
    velocity[i] = outer.momentum * velocity[i] + d;
    sum[i] = center[i] - outer.learning_rate * (d + outer.momentum * velocity[i]);
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
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const float grad = sum[i] / static_cast<float>(present);
    sum[i] = center[i] - local_step(center[i], grad, velocity, i, sgd);
  }
}

bool all_finite(std::span<const float> x) {
  for (const float value : x) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace stagger::reference
