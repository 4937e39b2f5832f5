#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backend.hpp"

namespace stagger {

/// Passes everything on.
class WrappedBackend : public Backend {
 public:
  explicit WrappedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  const std::vector<ParameterInfo>& parameters() const override { return inner_->parameters(); }

  std::size_t layers() const override { return inner_->layers(); }

  void bind(Arena& values, Arena& gradients) override {
    gradients_ = &gradients;
    inner_->bind(values, gradients);
  }

  std::size_t load(Iteration iteration, WorkerId rank) override {
    ++loads_;
    return inner_->load(iteration, rank);
  }

  void forward(LayerRange layers) override { inner_->forward(layers); }

  double loss() override { return inner_->loss(); }

  void backward(LayerRange layers) override { inner_->backward(layers); }

  Duration forward_time(LayerRange layers) const override { return inner_->forward_time(layers); }

  Duration backward_time(LayerRange layers) const override { return inner_->backward_time(layers); }

 protected:
  Arena* gradients_ = nullptr;
  int loads_ = 0;

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace stagger
