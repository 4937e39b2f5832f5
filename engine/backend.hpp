#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/time.hpp"
#include "ps/ids.hpp"
#include "tensor/arena.hpp"

namespace stagger {

/// What a worker computes with: a model on this machine's processor (compute_backend.hpp).
///
/// For:     Worker.
/// Owner:   the command. Thread: everything but the constants runs on the compute thread, one call
/// at a time. Failure: exceptions end the worker.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const std::vector<ParameterInfo>& parameters() const = 0;
  virtual std::size_t layers() const = 0;

  /// Which memory the parameters and gradients are; may change between iterations.
  virtual void bind(Arena& values, Arena& gradients) = 0;

  /// Makes the rank's minibatch of this iteration the current one; its size (0: nothing for this
  /// rank).
  virtual std::size_t load(Iteration iteration, WorkerId rank) = 0;

  virtual void forward(LayerRange layers) = 0;
  virtual double loss() = 0;
  virtual void backward(LayerRange layers) = 0;

  /// How long the calls take on the simulated machine.
  virtual Duration forward_time(LayerRange layers) const = 0;
  virtual Duration backward_time(LayerRange layers) const = 0;
};

}  // namespace stagger
