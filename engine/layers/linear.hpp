#pragma once

#include <cstddef>

#include "engine/layers/layer.hpp"

namespace stagger {

/// y = x*W^T + b, W of shape out x in as in PyTorch. Input: batch x features, plain.
class Linear final : public Layer {
 public:
  Linear(LayerSite site, std::size_t outputs);

  double forward_flops() const override;

 protected:
  Steps plan(std::size_t batch) override;

 private:
  std::size_t inputs_;
  std::size_t outputs_;
};

}  // namespace stagger
