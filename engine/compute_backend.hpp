#pragma once

#include <memory>

#include "engine/backend.hpp"
#include "engine/dataset.hpp"
#include "engine/model.hpp"

namespace stagger {

/// Runs a Model on batches of a Dataset.
class ComputeBackend final : public Backend {
 public:
  struct Options {
    double flops_per_second = 5e9;  ///< of the simulated machine
  };

  /// `dataset` outlives the backend.
  ComputeBackend(
      std::unique_ptr<Model> model, const Dataset& dataset, BatchOrder order, Options options);

  const std::vector<ParameterInfo>& parameters() const override { return model_->parameters(); }

  std::size_t layers() const override { return model_->layer_names().size(); }

  void bind(Arena& values, Arena& gradients) override { model_->bind(values, gradients); }

  std::size_t load(Iteration iteration, WorkerId rank) override;

  void forward(LayerRange layers) override { model_->forward(layers); }

  double loss() override { return model_->loss(); }

  void backward(LayerRange layers) override { model_->backward(layers); }

  Duration forward_time(LayerRange layers) const override;
  Duration backward_time(LayerRange layers) const override;

 private:
  std::unique_ptr<Model> model_;
  const Dataset& dataset_;
  BatchOrder order_;
  Options options_;
  Batch batch_;
};

}  // namespace stagger
