#pragma once

#include <cstdint>
#include <vector>

#include "engine/backend.hpp"
#include "engine/replay_profile.hpp"
#include "kernels/rng.hpp"

namespace stagger {

/// A backend without arithmetic: layers take the times and have the sizes of a profile, so that the
/// rest of the engine can be measured under a model that this machine could never train.
///
/// For:     Worker, as any backend.
/// Owner:   the command; the architecture outlives it. Thread: as Backend's.
///
/// Its calls return at once; what they are said to take (forward_time, backward_time) passes on the
/// virtual clock of a simulation, and in the real world with a compute thread that keeps nominal
/// times (Pace::nominal). Gradients are cheap and depend on seed, iteration, rank and layer alone,
/// so equal runs give equal parameters.
class ReplayBackend final : public Backend {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t batch = 1;  ///< samples that an iteration counts as
    double jitter = 0.0;    ///< an iteration takes 1 + jitter · uniform[0, 1) of its time
  };

  ReplayBackend(
      const Architecture& architecture, std::vector<LayerProfile> profile, Options options);

  const std::vector<ParameterInfo>& parameters() const override {
    return architecture_.parameters();
  }

  std::size_t layers() const override { return profile_.size(); }

  /// Fills the gradients once; backward() then changes values here and there.
  void bind(Arena& values, Arena& gradients) override;

  std::size_t load(Iteration iteration, WorkerId rank) override;

  void forward(LayerRange /*layers*/) override {}

  /// There is none.
  double loss() override { return 0.0; }

  void backward(LayerRange layers) override;

  Duration forward_time(LayerRange layers) const override;
  Duration backward_time(LayerRange layers) const override;

 private:
  Duration stretched(Duration time) const;
  RandomSequence chance(std::uint64_t purpose) const;

  const Architecture& architecture_;
  std::vector<LayerProfile> profile_;
  Options options_;
  Arena* gradients_ = nullptr;
  Iteration iteration_;
  WorkerId rank_;
  double stretch_ = 1.0;
};

}  // namespace stagger
