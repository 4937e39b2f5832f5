#pragma once

#include <functional>

#include "net/task.hpp"
#include "net/time.hpp"

namespace stagger {

/// Runs long pure work off the loop.
///
/// For:     forward, backward, optimiser steps.
/// Owner:   the Host's creator.
/// Thread:  run() is called on the loop and resumes there; `work` runs on the one compute thread,
/// in call order. In a
///          simulation it runs at once, on the loop, and `nominal` passes on the virtual clock.
/// Cancel:  work that has begun is never interrupted: run() returns after it, and the cancellation
/// shows at the next wait. Failure: what `work` throws is thrown by run().
class Compute {
 public:
  /// `nominal` is the time the work takes on the simulated machine. A real one takes what it takes,
  /// or, when it was told to keep nominal times (net/real/thread_compute.hpp), rests until they are
  /// over.
  virtual Task<void> run(std::function<void()> work, Duration nominal) = 0;

 protected:
  ~Compute() = default;
};

}  // namespace stagger
