#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elastic.hpp"
#include "kernels/rng.hpp"
#include "ps/center.hpp"

/// Workers that descend w*H*w/2 by the engine's own arithmetic: its kernels in the order in which a
/// replica takes them, and its center. The test brings gradients and linear algebra, no update.
namespace stagger {

using Vector = std::vector<double>;
using SquareMatrix = std::vector<Vector>;  // rows

inline Vector multiply(const SquareMatrix& matrix, const Vector& x) {
  Vector product(x.size(), 0.0);
  for (std::size_t row = 0; row < x.size(); ++row) {
    for (std::size_t column = 0; column < x.size(); ++column)
      product[row] += matrix[row][column] * x[column];
  }
  return product;
}

/// Largest modulus of the eigenvalues: lim |M^n|^(1/n), n = 2^40 by squaring.
inline double growth(SquareMatrix matrix) {
  double log_radius = 0.0;
  double weight = 1.0;
  for (int squaring = 0; squaring <= 40; ++squaring) {
    double norm = 0.0;
    for (const Vector& row : matrix) {
      for (const double value : row)
        norm = std::max(norm, std::abs(value));
    }
    if (norm == 0.0) return 0.0;
    log_radius += weight * std::log(norm);
    weight /= 2;
    for (Vector& row : matrix) {
      for (double& value : row)
        value /= norm;
    }
    const SquareMatrix factor = matrix;
    for (std::size_t row = 0; row < matrix.size(); ++row) {
      for (std::size_t column = 0; column < matrix.size(); ++column) {
        matrix[row][column] = 0.0;
        for (std::size_t k = 0; k < matrix.size(); ++k)
          matrix[row][column] += factor[row][k] * factor[k][column];
      }
    }
  }
  return std::exp(log_radius);
}

/// A dense symmetric matrix without negative eigenvalues, the largest just below `largest`.
inline SquareMatrix random_hessian(std::size_t size, double largest, RandomSequence& random) {
  SquareMatrix root(size, Vector(size));
  for (Vector& row : root) {
    for (double& value : row)
      value = 2.0 * static_cast<double>(random.uniform()) - 1.0;
  }
  SquareMatrix hessian(size, Vector(size, 0.0));
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column < size; ++column) {
      for (std::size_t k = 0; k < size; ++k)
        hessian[row][column] += root[row][k] * root[column][k];
    }
  }
  const double scale = 0.9999 * largest / growth(hessian);
  for (Vector& row : hessian) {
    for (double& value : row)
      value *= scale;
  }
  return hessian;
}

class QuadraticCluster {
 public:
  QuadraticCluster(
      SyncPolicy policy,
      SgdConstants sgd,
      const std::vector<std::size_t>& group_sizes,
      std::vector<SquareMatrix> hessians)  // one for each worker
      : policy_(policy),
        sgd_(sgd),
        hessians_(std::move(hessians)),
        layout_(layout_of(group_sizes)),
        center_(Arena(layout_), 16) {
    for (std::uint32_t k = 0; k < policy.workers; ++k) {
      replicas_.push_back(
          {.values = Arena(layout_),
           .gradients = Arena(layout_),
           .velocity = Arena(layout_),
           .pushed = Arena(layout_)});
    }
  }

  std::size_t groups() const { return layout_.groups(); }

  /// Replicas, then the center, then, if there is local momentum, the velocities.
  Vector state() const {
    Vector state;
    for (const Replica& replica : replicas_)
      append(replica.values, state);
    append(center_.assemble(), state);
    if (sgd_.momentum == 0.0F) return state;
    for (const Replica& replica : replicas_)
      append(replica.velocity, state);
    return state;
  }

  void set_state(const Vector& state) {
    auto next = state.begin();
    for (Replica& replica : replicas_)
      take(next, replica.values);
    Arena center(layout_);
    take(next, center);
    center_ = Center(center, 16);
    if (sgd_.momentum == 0.0F) return;
    for (Replica& replica : replicas_)
      take(next, replica.velocity);
  }

  /// One iteration of all. `due` by group; `present` by worker: one who is absent takes its local
  /// step alone.
  void iterate(const std::vector<bool>& due, const std::vector<bool>& present) {
    ++iteration_;
    for (std::size_t k = 0; k < replicas_.size(); ++k)
      differentiate(replicas_[k], hessians_[k]);
    for (std::size_t g = 0; g < groups(); ++g) {
      for (std::size_t k = 0; k < replicas_.size(); ++k)
        step(replicas_[k], g, due[g] && present[k]);
      if (due[g]) exchange(g, present);
    }
  }

 private:
  struct Replica {
    Arena values;
    Arena gradients;
    Arena velocity;
    Arena pushed;
  };

  static ArenaLayout layout_of(const std::vector<std::size_t>& sizes) {
    std::vector<ParameterInfo> parameters;
    std::vector<LayerRange> ranges;
    for (std::size_t layer = 0; layer < sizes.size(); ++layer) {
      parameters.push_back(
          {.name = std::to_string(layer), .shape = {sizes[layer]}, .layer = layer});
      const std::size_t from_output = sizes.size() - 1 - layer;
      ranges.push_back({.begin = from_output, .end = from_output + 1});
    }
    return {parameters, ranges};
  }

  static void append(const Arena& arena, Vector& state) {
    for (std::size_t g = 0; g < arena.layout().groups(); ++g)
      state.insert(state.end(), arena.group(g).begin(), arena.group(g).end());
  }

  static void take(Vector::const_iterator& next, Arena& arena) {
    for (std::size_t g = 0; g < arena.layout().groups(); ++g) {
      for (float& value : arena.group(g))
        value = static_cast<float>(*next++);
    }
  }

  static void differentiate(Replica& replica, const SquareMatrix& hessian) {
    Vector x;
    append(replica.values, x);
    const Vector gradient = multiply(hessian, x);
    auto next = gradient.begin();
    take(next, replica.gradients);
  }

  std::span<const float> center(std::size_t g) const {
    return center_.chunk(GroupId(static_cast<std::uint32_t>(g)), 0).span();
  }

  void step(Replica& replica, std::size_t g, bool exchanges) {
    const auto w = replica.values.group(g);
    const auto gradient = std::as_const(replica.gradients).group(g);
    const auto velocity = sgd_.momentum == 0.0F ? std::span<float>() : replica.velocity.group(g);
    const auto pushed = replica.pushed.group(g);
    std::copy(w.begin(), w.end(), pushed.begin());
    if (exchanges && policy_.rule == UpdateRule::old_center) {
      const auto alpha = static_cast<float>(policy_.alpha);
      cpu::sgd_elastic_step(w, gradient, velocity, center(g), sgd_, alpha);
    } else {
      cpu::sgd_step(w, gradient, velocity, sgd_);
    }
    if (policy_.rule == UpdateRule::post_step) std::copy(w.begin(), w.end(), pushed.begin());
  }

  void exchange(std::size_t g, const std::vector<bool>& present) {
    ChunkBuffer sum;
    std::uint32_t count = 0;
    for (std::size_t k = 0; k < replicas_.size(); ++k) {
      if (!present[k]) continue;
      const auto pushed = std::as_const(replicas_[k].pushed).group(g);
      if (count++ == 0) {
        sum = center_.pool().acquire();
        std::copy(pushed.begin(), pushed.end(), sum->span().begin());
      } else {
        cpu::accumulate(sum->span().first(pushed.size()), pushed);
      }
    }
    const RoundId round{
        .group = GroupId(static_cast<std::uint32_t>(g)), .iteration = Iteration(iteration_)};
    center_.close({.round = round, .chunk = 0, .present = count}, policy_, std::move(sum));
    const auto alpha = static_cast<float>(policy_.alpha);
    for (std::size_t k = 0; k < replicas_.size(); ++k) {
      if (!present[k]) continue;
      const auto w = replicas_[k].values.group(g);
      if (policy_.rule == UpdateRule::fresh_center) {
        cpu::elastic_pull(w, std::as_const(replicas_[k].pushed).group(g), center(g), alpha);
      } else if (policy_.rule == UpdateRule::post_step) {
        cpu::elastic_mix(w, center(g), alpha);
      }
    }
  }

  SyncPolicy policy_;
  SgdConstants sgd_;
  std::vector<SquareMatrix> hessians_;
  ArenaLayout layout_;
  Center center_;
  std::vector<Replica> replicas_;
  std::uint64_t iteration_ = 0;
};

}  // namespace stagger
