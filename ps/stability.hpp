#pragma once

#include <cstdint>

#include "ps/policy.hpp"

/// Stability of elastic averaging on a quadratic (one decoupled coordinate of curvature h, one
/// exchange every T steps).
///
/// Theory: with r = 1 - lr*h the mean mode of worker x and center c over one period is a 2x2 map,
/// the disagreement between workers a scalar; with momentum the map has the states (x, v, c, o), o
/// being the center's. A setting is stable when the spectral radius over all curvatures in (0, L]
/// is below 1.
namespace stagger {

struct StabilityQuery {
  UpdateRule rule = UpdateRule::old_center;
  double alpha = 0.0;
  double beta = 0.9;
  std::uint32_t period = 1;  ///< T
  double momentum = 0.0;     ///< heavy ball
  /// Nesterov, of the center's step; REQUIRES post_step when above 0. beta is then the outer
  /// learning rate, alpha the share of the center that the replica takes.
  double outer_momentum = 0.0;
};

/// Largest modulus over the period map's eigenvalues and the disagreement multiplier, for one lr*h.
double spectral_radius(const StabilityQuery& query, double lr_times_curvature);

/// Maximum over a grid of lr*h in (0, lr_times_curvature_max].
double spectral_radius_max(const StabilityQuery& query, double lr_times_curvature_max);

/// The sufficient condition 2*alpha_e < (2 - beta)*(2 - lr*L), for plain SGD, any period, grouping,
/// order and absent workers (alpha_e = alpha, or alpha*(1 - beta) with fresh_center, which needs
/// beta <= 1 and alpha < 2 - lr*L too, for the workers' disagreement; post_step with alpha, beta <=
/// 1 needs lr*L < 2 alone). Nothing is proven with momentum, of either kind. False says
/// nothing but "not proven".
bool certified_stable(const StabilityQuery& query, double lr_times_curvature_max);

}  // namespace stagger
