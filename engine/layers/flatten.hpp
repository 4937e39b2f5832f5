#pragma once

#include "engine/layers/layer.hpp"

namespace stagger {

/// Images to rows of features, channel by channel as in PyTorch. A mere view where the input is
/// plain already, else the place where oneDNN's blocks are put in order.
class Flatten final : public Layer {
 public:
  explicit Flatten(LayerSite site);

  double forward_flops() const override { return 0.0; }

 protected:
  Steps plan(std::size_t batch) override;

 private:
  dnnl::memory::desc image_;  ///< the input's extents in plain format, for the largest batch
  bool view_;
};

}  // namespace stagger
