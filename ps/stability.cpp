#include "ps/stability.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "observability/check.hpp"

namespace stagger {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Of the states (x, v, c, o): replica, its momentum, center, its momentum.
constexpr std::size_t states = 4;
using Row = std::array<double, states>;
using Matrix = std::array<Row, states>;

Matrix multiply(const Matrix& left, const Matrix& right) {
  Matrix product{};
  for (std::size_t row = 0; row < states; ++row) {
    for (std::size_t column = 0; column < states; ++column) {
      for (std::size_t k = 0; k < states; ++k) {
        product[row][column] += left[row][k] * right[k][column];
      }
    }
  }
  return product;
}

Matrix power(Matrix base, std::uint32_t exponent) {
  Matrix result{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

/// Gelfand's formula, lim |M^n|^(1/n), with n = 2^40 by squaring: unlike the roots of the
/// characteristic polynomial it does not lose digits when eigenvalues meet, as they do at the
/// border between ringing and monotone decay.
double gelfand_radius(Matrix matrix) {
  double log_radius = 0.0;
  double weight = 1.0;
  for (int squarings = 0; squarings <= 40; ++squarings) {
    double norm = 0.0;
    for (const auto& row : matrix) {
      double sum = 0.0;
      for (const double value : row)
        sum += std::abs(value);
      if (!std::isfinite(sum)) return infinite;
      norm = std::max(norm, sum);
    }
    if (norm == 0.0) return 0.0;
    log_radius += weight * std::log(norm);
    weight /= 2;
    for (auto& row : matrix) {
      for (double& value : row)
        value /= norm;
    }
    matrix = multiply(matrix, matrix);
  }
  return std::exp(log_radius);
}

/// Largest modulus of the eigenvalues of [[a, b], [c, d]].
double radius_2x2(double a, double b, double c, double d) {
  const double half_trace = (a + d) / 2;
  const double determinant = a * d - b * c;
  const double discriminant = half_trace * half_trace - determinant;
  if (!std::isfinite(discriminant)) return infinite;
  if (discriminant < 0) return std::sqrt(determinant);  // a complex pair
  return std::abs(half_trace) + std::sqrt(discriminant);
}

double plain_radius(const StabilityQuery& query, double lr_times_curvature) {
  const double r = 1.0 - lr_times_curvature;
  const double before_sync = std::pow(r, static_cast<double>(query.period - 1));
  const double alpha = query.alpha;
  const double beta = query.beta;
  if (query.rule == UpdateRule::post_step) {
    const double decay = before_sync * r;
    const double mean =
        radius_2x2((1 - alpha + alpha * beta) * decay, alpha * (1 - beta), beta * decay, 1 - beta);
    return std::max(mean, std::abs((1 - alpha) * decay));
  }
  const double pull = query.rule == UpdateRule::fresh_center ? alpha * (1 - beta) : alpha;
  const double mean = radius_2x2((r - pull) * before_sync, pull, beta * before_sync, 1 - beta);
  return std::max(mean, std::abs(before_sync * (r - alpha)));
}

/// post_step's mean mode: o' = mu*o + d, c' = c - beta*(d + mu*o') with d = c - y, and w' a mix of
/// y and c'.
Matrix outer_map(const StabilityQuery& query, const Matrix& local) {
  const double mu = query.outer_momentum;
  const Row& y = local[0];
  Matrix map = local;
  for (std::size_t state = 0; state < states; ++state) {
    const double center = state == 2 ? 1.0 : 0.0;
    const double d = center - y[state];
    map[3][state] = d + (state == 3 ? mu : 0.0);
    map[2][state] = center - query.beta * (d + mu * map[3][state]);
    map[0][state] = (1 - query.alpha) * y[state] + query.alpha * map[2][state];
  }
  return map;
}

/// The map of an iteration with an exchange: of the mean mode, or of the disagreement, which the
/// center does not reach.
Matrix exchange_map(const StabilityQuery& query, const Matrix& local, bool mean_mode) {
  const double alpha = query.alpha;
  const double beta = query.beta;
  const double keep = mean_mode ? 1 - alpha + alpha * beta : 1 - alpha;
  Matrix map = local;
  map[2] = {};
  map[3] = {};
  if (query.rule == UpdateRule::post_step) {
    if (mean_mode) return outer_map(query, local);
    map[0] = {keep * local[0][0], keep * local[0][1], 0, 0};
  } else {
    const bool fresh = query.rule == UpdateRule::fresh_center;
    map[0][0] += fresh ? keep - 1 : -alpha;
    if (mean_mode) map[2] = {beta, 0, 1 - beta, 0};
  }
  if (mean_mode) map[0][2] = query.rule == UpdateRule::old_center ? alpha : alpha * (1 - beta);
  return map;
}

double momentum_radius(const StabilityQuery& query, double lr_times_curvature) {
  // v' = momentum*v - lr*h*x;  x' = x + v'
  const Matrix local{
      {{1 - lr_times_curvature, query.momentum, 0, 0},
       {-lr_times_curvature, query.momentum, 0, 0},
       {0, 0, 1, 0},
       {0, 0, 0, 1}}};
  const Matrix before_sync = power(local, query.period - 1);
  const double mean = gelfand_radius(multiply(exchange_map(query, local, true), before_sync));
  const double disagreement =
      gelfand_radius(multiply(exchange_map(query, local, false), before_sync));
  return std::max(mean, disagreement);
}

}  // namespace

double spectral_radius(const StabilityQuery& query, double lr_times_curvature) {
  CHECK(query.period >= 1, "period", query.period);
  CHECK(query.outer_momentum == 0.0 || query.rule == UpdateRule::post_step, "outer momentum");
  const bool plain = query.momentum == 0.0 && query.outer_momentum == 0.0;
  return plain ? plain_radius(query, lr_times_curvature)
               : momentum_radius(query, lr_times_curvature);
}

double spectral_radius_max(const StabilityQuery& query, double lr_times_curvature_max) {
  CHECK(lr_times_curvature_max > 0, "lr*L", lr_times_curvature_max);
  // Points at squares: with momentum the replica swings at a frequency that goes with the root of
  // the curvature, so that bands in which it meets the exchanges are equally wide on this grid.
  constexpr int points = 1024;
  double worst = 0.0;
  for (int point = 1; point <= points; ++point) {
    const double share = static_cast<double>(point) / points;
    worst = std::max(worst, spectral_radius(query, lr_times_curvature_max * share * share));
  }
  return worst;
}

bool certified_stable(const StabilityQuery& query, double lr_times_curvature_max) {
  const double slack = 2 - lr_times_curvature_max;
  const double alpha = query.alpha;
  const double beta = query.beta;
  const bool momentum = query.momentum != 0.0 || query.outer_momentum != 0.0;
  if (momentum || !(slack > 0) || !(alpha >= 0) || !(beta > 0) || !(beta < 2)) return false;
  switch (query.rule) {
    case UpdateRule::old_center:
      return 2 * alpha < (2 - beta) * slack;
    case UpdateRule::fresh_center:
      // The workers' disagreement feels the whole alpha, not the share that the mean feels.
      return beta <= 1 && 2 * alpha * (1 - beta) < (2 - beta) * slack && alpha < slack;
    case UpdateRule::post_step:
      return alpha <= 1 && beta <= 1;
  }
  return false;
}

}  // namespace stagger
