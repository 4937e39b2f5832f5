#include "engine/layers/relu.hpp"

#include <cstddef>
#include <utility>

namespace stagger {

Relu::Relu(LayerSite place) : Layer(std::move(place)) {
  share_output(site().input.format);
}

double Relu::forward_flops() const {
  double elements = 1.0;
  const std::vector<std::size_t> extents = site().extents();
  for (std::size_t axis = 1; axis < extents.size(); ++axis) {
    elements *= static_cast<double>(extents[axis]);
  }
  return elements;
}

Layer::Steps Relu::plan(std::size_t batch) {
  const dnnl::engine& engine = site().engine;
  const dnnl::memory values = input_values(batch);
  // Backward from the output: the input is gone. For relu both have the same sign.
  constexpr auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
  const dnnl::eltwise_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, values.get_desc(), 0.0F, 0.0F},
      own_scratchpad(),
      engine);
  Steps steps;
  steps.forward.emplace_back(
      engine,
      dnnl::eltwise_forward(forward),
      forward.scratchpad_desc(),
      Operation::Arguments{{DNNL_ARG_SRC, values}, {DNNL_ARG_DST, values}});
  if (site().input.gradients == nullptr) return steps;

  const dnnl::memory gradients = input_gradients(batch);
  const dnnl::eltwise_backward::primitive_desc backward(
      {algorithm, gradients.get_desc(), values.get_desc(), 0.0F, 0.0F},
      own_scratchpad(),
      engine,
      forward);
  steps.backward.emplace_back(
      engine,
      dnnl::eltwise_backward(backward),
      backward.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_DST, values}, {DNNL_ARG_DIFF_DST, gradients}, {DNNL_ARG_DIFF_SRC, gradients}});
  return steps;
}

}  // namespace stagger
