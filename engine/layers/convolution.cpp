#include "engine/layers/convolution.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagger {

namespace {

using dnnl::memory;

constexpr auto direct = dnnl::algorithm::convolution_direct;

memory::dim signed_dim(std::size_t extent) {
  return static_cast<memory::dim>(extent);
}

memory::desc any_format(const memory::dims& extents) {
  return {extents, memory::data_type::f32, memory::format_tag::any};
}

memory::desc channels_last_format(const memory::dims& extents) {
  return {extents, memory::data_type::f32, memory::format_tag::nhwc};
}

/// Extent of the output; throws where the kernel does not fit.
std::size_t output_extent(
    const std::string& name, std::size_t input, const ConvolutionOptions& options) {
  const std::size_t padded = input + 2 * options.padding;
  if (options.kernel == 0 || options.stride == 0 || options.kernel > padded) {
    throw std::invalid_argument(
        name + ": a kernel of " + std::to_string(options.kernel) + " does not fit an input of " +
        std::to_string(input));
  }
  return (padded - options.kernel) / options.stride + 1;
}

}  // namespace

/// The three computations over one pair of formats.
struct Convolution::Passes {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_weights::primitive_desc weights;
  dnnl::convolution_backward_data::primitive_desc data;

  /// Whether oneDNN has compiled code for all that are run; its fallback is a thousand times
  /// slower.
  bool fast(bool with_data) const {
    return !is_fallback(forward.impl_info_str()) && !is_fallback(weights.impl_info_str()) &&
           (!with_data || !is_fallback(data.impl_info_str()));
  }

  static bool is_fallback(std::string_view implementation) {
    return implementation.starts_with("ref");
  }
};

/// The memory of one batch size.
struct Convolution::Memories {
  memory x;   ///< the input in the format that is convolved
  memory dx;  ///< its gradient; empty where nobody asks
  memory y;
  memory dy;
  memory weights;  ///< in the arena
};

Convolution::Convolution(LayerSite place, ConvolutionOptions options)
    : Layer(std::move(place)), options_(options) {
  const std::vector<std::size_t> extents = site().extents();
  if (extents.size() != 4) throw std::invalid_argument(name() + ": input is not an image");
  if (options.outputs == 0) throw std::invalid_argument(name() + ": no outputs");
  const std::size_t height = output_extent(name(), extents[2], options);
  const std::size_t width = output_extent(name(), extents[3], options);
  declare_parameter("weight", {options.outputs, extents[1], options.kernel, options.kernel});
  declare_parameter("bias", {options.outputs});
  plain_weights_ = {
      {signed_dim(options.outputs),
       signed_dim(extents[1]),
       signed_dim(options.kernel),
       signed_dim(options.kernel)},
      memory::data_type::f32,
      memory::format_tag::oihw};
  bias_ = {{signed_dim(options.outputs)}, memory::data_type::f32, memory::format_tag::a};

  choose_formats(
      {signed_dim(extents[0]), signed_dim(options.outputs), signed_dim(height), signed_dim(width)});
}

void Convolution::choose_formats(const memory::dims& output_extents) {
  const memory::dims input_extents = site().input.format.dims();
  // oneDNN's own choice is the fastest forward, and may have no fast backward; channels-last then
  // has.
  Passes passes = describe(any_format(input_extents), any_format(output_extents));
  const bool with_data = site().input.gradients != nullptr;
  if (!passes.fast(with_data)) {
    const Passes channels_last =
        describe(channels_last_format(input_extents), channels_last_format(output_extents));
    if (channels_last.fast(with_data)) passes = channels_last;
  }
  input_format_ = passes.forward.src_desc();
  if (input_format_ != site().input.format) {
    input_values_copy_ = AlignedFloats(floats_of(input_format_));
    input_gradients_copy_ = AlignedFloats(floats_of(input_format_));
  }
  allocate_output(passes.forward.dst_desc());
}

double Convolution::forward_flops() const {
  const memory::dims y = output().format.dims();
  const double per_output = 2.0 * static_cast<double>(parameters()[0].size());
  return per_output * static_cast<double>(y[2] * y[3]);
}

Convolution::Passes Convolution::describe(const memory::desc& x, const memory::desc& y) const {
  const dnnl::engine& engine = site().engine;
  const dnnl::primitive_attr attributes = own_scratchpad();
  const memory::dims strides(2, signed_dim(options_.stride));
  const memory::dims padding(2, signed_dim(options_.padding));
  const memory::desc w = any_format(plain_weights_.dims());
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x, w, bias_, y, strides, padding, padding},
      attributes,
      engine);
  const memory::desc& source = forward.src_desc();
  const memory::desc& target = forward.dst_desc();
  const dnnl::convolution_backward_weights::primitive_desc weights(
      {direct, source, w, bias_, target, strides, padding, padding}, attributes, engine, forward);
  const dnnl::convolution_backward_data::primitive_desc data(
      {direct, source, w, target, strides, padding, padding}, attributes, engine, forward);
  return {.forward = forward, .weights = weights, .data = data};
}

Layer::Steps Convolution::plan(std::size_t batch) {
  const dnnl::engine& engine = site().engine;
  const bool copied = input_values_copy_.size() > 0;
  const bool wants_gradients = site().input.gradients != nullptr;
  const memory::desc x_format = narrowed(input_format_, batch);

  Memories memories{
      .x = input_values(batch),
      .dx = wants_gradients ? input_gradients(batch) : memory(),
      .y = output_values(batch),
      .dy = output_gradients(batch),
      .weights = memory(plain_weights_, engine, parameter(0))};
  Steps steps;
  if (copied) {
    memories.x = memory(x_format, engine, input_values_copy_.span().data());
    steps.forward.push_back(reorder_operation(input_values(batch), memories.x));
    if (wants_gradients) {
      memories.dx = memory(x_format, engine, input_gradients_copy_.span().data());
    }
  }
  const Passes passes = describe(x_format, memories.y.get_desc());
  plan_forward(steps, passes, memories);
  plan_backward_weights(steps, passes, memories);
  if (!wants_gradients) return steps;
  plan_backward_data(steps, passes, memories);
  if (copied) steps.backward.push_back(reorder_operation(memories.dx, input_gradients(batch)));
  return steps;
}

void Convolution::plan_forward(Steps& steps, const Passes& passes, const Memories& memories) const {
  const dnnl::engine& engine = site().engine;
  memory weights = memories.weights;
  if (passes.forward.weights_desc() != plain_weights_) {
    weights = memory(passes.forward.weights_desc(), engine);
    steps.forward.push_back(reorder_operation(memories.weights, weights));
  }
  steps.forward.emplace_back(
      engine,
      dnnl::convolution_forward(passes.forward),
      passes.forward.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, memories.x},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_BIAS, memory(bias_, engine, parameter(1))},
          {DNNL_ARG_DST, memories.y}});
}

void Convolution::plan_backward_weights(
    Steps& steps, const Passes& passes, const Memories& memories) const {
  const dnnl::engine& engine = site().engine;
  const memory plain(plain_weights_, engine, parameter_gradient(0));
  const bool reordered = passes.weights.diff_weights_desc() != plain_weights_;
  const memory target = reordered ? memory(passes.weights.diff_weights_desc(), engine) : plain;
  steps.backward.emplace_back(
      engine,
      dnnl::convolution_backward_weights(passes.weights),
      passes.weights.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, memories.x},
          {DNNL_ARG_DIFF_DST, memories.dy},
          {DNNL_ARG_DIFF_WEIGHTS, target},
          {DNNL_ARG_DIFF_BIAS, memory(bias_, engine, parameter_gradient(1))}});
  if (reordered) steps.backward.push_back(reorder_operation(target, plain));
}

void Convolution::plan_backward_data(
    Steps& steps, const Passes& passes, const Memories& memories) const {
  const dnnl::engine& engine = site().engine;
  memory weights = memories.weights;
  if (passes.data.weights_desc() != plain_weights_) {
    weights = memory(passes.data.weights_desc(), engine);
    steps.backward.push_back(reorder_operation(memories.weights, weights));
  }
  steps.backward.emplace_back(
      engine,
      dnnl::convolution_backward_data(passes.data),
      passes.data.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_DIFF_DST, memories.dy},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_DIFF_SRC, memories.dx}});
}

}  // namespace stagger
