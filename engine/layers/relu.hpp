#pragma once

#include "engine/layers/layer.hpp"

namespace stagger {

/// max(x, 0), in place: no layer of ours needs its own output to go backward, so the input's memory
/// serves for both, which halves the memory a step touches. The derivative at 0 is 0.
class Relu final : public Layer {
 public:
  explicit Relu(LayerSite site);

  double forward_flops() const override;

 protected:
  Steps plan(std::size_t batch) override;
};

}  // namespace stagger
