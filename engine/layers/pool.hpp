#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/layers/layer.hpp"

namespace stagger {

enum class PoolKind : std::uint8_t { max, average };

/// Square windows side by side: kernel = stride, no padding, a rest at the right and the bottom is
/// left out, as in PyTorch's MaxPool2d(size) and AvgPool2d(size). The format is the input's.
class Pool final : public Layer {
 public:
  Pool(LayerSite site, PoolKind kind, std::size_t size);

  double forward_flops() const override;

 protected:
  Steps plan(std::size_t batch) override;

 private:
  PoolKind kind_;
  std::size_t size_;
};

}  // namespace stagger
