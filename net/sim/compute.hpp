#pragma once

#include <list>

#include "net/compute.hpp"
#include "net/sim/clock.hpp"
#include "net/sim/random.hpp"

namespace stagger {

/// One simulated processor: the work itself runs on the loop and costs nothing, then its nominal
/// time passes.
///
/// Overlapping calls run one at a time, in call order. A cancelled call whose work has not begun
/// never begins.
class SimCompute final : public Compute {
 public:
  struct Options {
    double scale = 1.0;  ///< nominal times are multiplied by this: 2 is a machine of half the speed
    double jitter = 0.0;  ///< and by 1 + jitter · uniform[0, 1)
  };

  SimCompute(Executor executor, SimClock& clock, Options options, SimRandom random);

  Task<void> run(std::function<void()> work, Duration nominal) override;

 private:
  Task<void> take_turn();
  void pass_turn();
  Duration charged(Duration nominal);

  Executor executor_;
  SimClock& clock_;
  Options options_;
  SimRandom random_;
  std::list<Waiter*> queue_;
  bool busy_ = false;
};

}  // namespace stagger
