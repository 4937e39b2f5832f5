#pragma once

#include <cstddef>

#include "engine/layers/layer.hpp"

namespace stagger {

/// A square kernel's numbers.
struct ConvolutionOptions {
  std::size_t outputs = 1;
  std::size_t kernel = 1;
  std::size_t stride = 1;
  std::size_t padding = 0;
};

/// 2-d convolution as in PyTorch (a correlation), weights of shape out x in x kernel x kernel.
///
/// oneDNN chooses the formats of its output and of the weights it computes with (blocks of
/// channels, as wide as the processor's vectors). The arena's weights stay plain, and are reordered
/// in each step: they change in each step, and are small beside the activations.
class Convolution final : public Layer {
 public:
  Convolution(LayerSite site, ConvolutionOptions options);

  double forward_flops() const override;

 protected:
  Steps plan(std::size_t batch) override;

 private:
  struct Passes;
  struct Memories;

  void choose_formats(const dnnl::memory::dims& output_extents);
  Passes describe(const dnnl::memory::desc& x, const dnnl::memory::desc& y) const;
  void plan_forward(Steps& steps, const Passes& passes, const Memories& memories) const;
  void plan_backward_weights(Steps& steps, const Passes& passes, const Memories& memories) const;
  void plan_backward_data(Steps& steps, const Passes& passes, const Memories& memories) const;

  ConvolutionOptions options_;
  dnnl::memory::desc plain_weights_;
  dnnl::memory::desc bias_;
  dnnl::memory::desc input_format_;  ///< in which the input is convolved; for the largest batch
  AlignedFloats input_values_copy_;  ///< the input in that format, where the producer's differs
  AlignedFloats input_gradients_copy_;
};

}  // namespace stagger
