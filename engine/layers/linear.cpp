#include "engine/layers/linear.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace stagger {

namespace {

using dnnl::memory;

memory::desc plain(memory::dims extents) {
  const auto tag = extents.size() == 1 ? memory::format_tag::a : memory::format_tag::ab;
  return {std::move(extents), memory::data_type::f32, tag};
}

memory::dim signed_dim(std::size_t extent) {
  return static_cast<memory::dim>(extent);
}

}  // namespace

Linear::Linear(LayerSite place, std::size_t outputs)
    : Layer(std::move(place)), inputs_(0), outputs_(outputs) {
  const std::vector<std::size_t> extents = site().extents();
  if (extents.size() != 2) throw std::invalid_argument(name() + ": input is not flat");
  if (outputs == 0) throw std::invalid_argument(name() + ": no outputs");
  inputs_ = extents[1];
  declare_parameter("weight", {outputs_, inputs_});
  declare_parameter("bias", {outputs_});
  allocate_output(plain({signed_dim(extents[0]), signed_dim(outputs_)}));
}

double Linear::forward_flops() const {
  return 2.0 * static_cast<double>(inputs_) * static_cast<double>(outputs_);
}

Layer::Steps Linear::plan(std::size_t batch) {
  const dnnl::engine& engine = site().engine;
  const memory::desc weights = plain({signed_dim(outputs_), signed_dim(inputs_)});
  const memory::desc bias = plain({signed_dim(outputs_)});
  const memory x = input_values(batch);
  const memory y = output_values(batch);
  const memory w(weights, engine, parameter(0));
  Steps steps;

  using Forward = dnnl::inner_product_forward;
  const Forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, x.get_desc(), weights, bias, y.get_desc()},
      own_scratchpad(),
      engine);
  steps.forward.emplace_back(
      engine,
      Forward(forward),
      forward.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, x},
          {DNNL_ARG_WEIGHTS, w},
          {DNNL_ARG_BIAS, memory(bias, engine, parameter(1))},
          {DNNL_ARG_DST, y}});

  const memory dy = output_gradients(batch);
  using BackwardWeights = dnnl::inner_product_backward_weights;
  const BackwardWeights::primitive_desc backward_weights(
      {x.get_desc(), weights, bias, y.get_desc()}, own_scratchpad(), engine, forward);
  steps.backward.emplace_back(
      engine,
      BackwardWeights(backward_weights),
      backward_weights.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, x},
          {DNNL_ARG_DIFF_DST, dy},
          {DNNL_ARG_DIFF_WEIGHTS, memory(weights, engine, parameter_gradient(0))},
          {DNNL_ARG_DIFF_BIAS, memory(bias, engine, parameter_gradient(1))}});

  if (site().input.gradients == nullptr) return steps;
  using BackwardData = dnnl::inner_product_backward_data;
  const BackwardData::primitive_desc backward_data(
      {x.get_desc(), weights, y.get_desc()}, own_scratchpad(), engine, forward);
  steps.backward.emplace_back(
      engine,
      BackwardData(backward_data),
      backward_data.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_DIFF_DST, dy},
          {DNNL_ARG_WEIGHTS, w},
          {DNNL_ARG_DIFF_SRC, input_gradients(batch)}});
  return steps;
}

}  // namespace stagger
