#pragma once

#include <cstddef>
#include <span>

/// Elastic averaging and ordered sums over spans of equal length. No allocation, no dispatch, one
/// thread.
///
/// Each function exists twice: reference:: is the obvious loop (the oracle), cpu:: is vectorised.
/// Element-wise results are equal bit for bit.
namespace stagger {

/// Constants of a local step, SGD with heavy-ball momentum and weight decay as part of the gradient
/// (PyTorch's SGD):
///   g = grad + weight_decay*w;  v = momentum*v + g;  step = learning_rate*v
struct SgdConstants {
  float learning_rate = 0.0F;
  float momentum = 0.0F;
  float weight_decay = 0.0F;
};

/// Of a center's outer step, SGD with Nesterov momentum (PyTorch's SGD with nesterov).
struct OuterConstants {
  float learning_rate = 1.0F;
  float momentum = 0.0F;
};

/// Whose values are in a sum.
struct Attendance {
  std::size_t present = 0;
  std::size_t workers = 0;
};

namespace reference {

/// w -= step. `velocity` is empty when momentum is 0.
void sgd_step(
    std::span<float> w, std::span<const float> grad, std::span<float> velocity, SgdConstants sgd);

/// old_center: w' = w - step - alpha*(w - center), one pass.
void sgd_elastic_step(
    std::span<float> w,
    std::span<const float> grad,
    std::span<float> velocity,
    std::span<const float> center,
    SgdConstants sgd,
    float alpha);

/// fresh_center, second half: w -= alpha*(pushed - center), pushed being the w before the step.
void elastic_pull(
    std::span<float> w, std::span<const float> pushed, std::span<const float> center, float alpha);

/// post_step: w = (1 - alpha)*w + alpha*center, exactly center for alpha = 1.
void elastic_mix(std::span<float> w, std::span<const float> center, float alpha);

/// sum += x.
void accumulate(std::span<float> sum, std::span<const float> x);

/// Elastic center step in place of the sum: sum' = (1 - beta*present/workers)*center +
/// beta*sum/workers, which is c + (beta/K)*sum over the present of (x - c), and exactly the mean
/// sum/workers for beta = 1 with all present (divided, since sum*(1/workers) rounds twice).
void elastic_center(
    std::span<float> sum,
    std::span<const float> center,
    float beta,
    std::size_t present,
    std::size_t workers);

/// diloco: sum' = center - learning_rate*(d + momentum*v') with v' = momentum*v + d, where d =
/// (present*center - sum)/workers is the center less the mean, those absent counting as the center.
/// `velocity` holds v. REQUIRES present > 0.
void outer_center(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    OuterConstants outer,
    Attendance attendance);

/// bsp: sum' = center - step with grad = sum/present. REQUIRES present > 0.
void mean_gradient_step(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    SgdConstants sgd,
    std::size_t present);

/// False when any value is NaN or infinite.
bool all_finite(std::span<const float> x);

}  // namespace reference

namespace cpu {

void sgd_step(
    std::span<float> w, std::span<const float> grad, std::span<float> velocity, SgdConstants sgd);
void sgd_elastic_step(
    std::span<float> w,
    std::span<const float> grad,
    std::span<float> velocity,
    std::span<const float> center,
    SgdConstants sgd,
    float alpha);
void elastic_pull(
    std::span<float> w, std::span<const float> pushed, std::span<const float> center, float alpha);
void elastic_mix(std::span<float> w, std::span<const float> center, float alpha);
void accumulate(std::span<float> sum, std::span<const float> x);
void elastic_center(
    std::span<float> sum,
    std::span<const float> center,
    float beta,
    std::size_t present,
    std::size_t workers);
void outer_center(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    OuterConstants outer,
    Attendance attendance);
void mean_gradient_step(
    std::span<float> sum,
    std::span<const float> center,
    std::span<float> velocity,
    SgdConstants sgd,
    std::size_t present);
bool all_finite(std::span<const float> x);

}  // namespace cpu

}  // namespace stagger
