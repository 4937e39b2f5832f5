#include "engine/layers/convolution.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "observability/check.hpp"

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

/// What one batch size is computed with.
struct Convolution::Formats {
  dnnl::convolution_forward::primitive_desc forward;
  memory input;  ///< the layer's input as it comes
  memory x;      ///< the same in the format that is convolved
  memory dx;     ///< its gradient; empty where nobody asks
  memory y;
  memory dy;
  memory plain_weights;  ///< in the arena
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

  const auto chosen = forward_description(
      any_format(site().input.format.dims()),
      any_format(
          {signed_dim(extents[0]),
           signed_dim(options.outputs),
           signed_dim(height),
           signed_dim(width)}));
  input_format_ = chosen.src_desc();
  if (input_format_ != site().input.format) {
    input_values_copy_ = AlignedFloats(floats_of(input_format_));
    input_gradients_copy_ = AlignedFloats(floats_of(input_format_));
  }
  allocate_output(chosen.dst_desc());
}

double Convolution::forward_flops() const {
  const memory::dims y = output().format.dims();
  const double per_output = 2.0 * static_cast<double>(parameters()[0].size());
  return per_output * static_cast<double>(y[2] * y[3]);
}

dnnl::convolution_forward::primitive_desc Convolution::forward_description(
    const memory::desc& x, const memory::desc& y) const {
  const memory::dim stride = signed_dim(options_.stride);
  const memory::dim padding = signed_dim(options_.padding);
  return {
      {dnnl::prop_kind::forward_training,
       direct,
       x,
       any_format(plain_weights_.dims()),
       bias_,
       y,
       {stride, stride},
       {padding, padding},
       {padding, padding}},
      own_scratchpad(),
      site().engine};
}

Layer::Steps Convolution::plan(std::size_t batch) {
  const dnnl::engine& engine = site().engine;
  const bool copied = input_values_copy_.size() > 0;
  const memory::desc x_format = narrowed(input_format_, batch);
  const bool wants_gradients = site().input.gradients != nullptr;

  Formats formats{
      .forward = forward_description(x_format, output_values(batch).get_desc()),
      .input = input_values(batch),
      .x = input_values(batch),
      .dx = {},
      .y = output_values(batch),
      .dy = output_gradients(batch),
      .plain_weights = memory(plain_weights_, engine, parameter(0))};
  if (wants_gradients) formats.dx = input_gradients(batch);
  if (copied) {
    formats.x = memory(x_format, engine, input_values_copy_.span().data());
    if (wants_gradients) {
      formats.dx = memory(x_format, engine, input_gradients_copy_.span().data());
    }
  }

  Steps steps;
  if (copied) steps.forward.push_back(reorder_operation(formats.input, formats.x));
  plan_forward(steps, formats);
  plan_backward_weights(steps, formats);
  if (!wants_gradients) return steps;
  plan_backward_data(steps, formats);
  if (copied) steps.backward.push_back(reorder_operation(formats.dx, input_gradients(batch)));
  return steps;
}

void Convolution::plan_forward(Steps& steps, const Formats& formats) const {
  const dnnl::engine& engine = site().engine;
  memory weights = formats.plain_weights;
  if (formats.forward.weights_desc() != plain_weights_) {
    weights = memory(formats.forward.weights_desc(), engine);
    steps.forward.push_back(reorder_operation(formats.plain_weights, weights));
  }
  steps.forward.emplace_back(
      engine,
      dnnl::convolution_forward(formats.forward),
      formats.forward.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, formats.x},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_BIAS, memory(bias_, engine, parameter(1))},
          {DNNL_ARG_DST, formats.y}});
}

void Convolution::plan_backward_weights(Steps& steps, const Formats& formats) const {
  const dnnl::engine& engine = site().engine;
  const memory::dim stride = signed_dim(options_.stride);
  const memory::dim padding = signed_dim(options_.padding);
  const dnnl::convolution_backward_weights::primitive_desc description(
      {direct,
       formats.x.get_desc(),
       any_format(plain_weights_.dims()),
       bias_,
       formats.dy.get_desc(),
       {stride, stride},
       {padding, padding},
       {padding, padding}},
      own_scratchpad(),
      engine,
      formats.forward);
  const memory plain(plain_weights_, engine, parameter_gradient(0));
  const bool reordered = description.diff_weights_desc() != plain_weights_;
  const memory target = reordered ? memory(description.diff_weights_desc(), engine) : plain;
  steps.backward.emplace_back(
      engine,
      dnnl::convolution_backward_weights(description),
      description.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_SRC, formats.x},
          {DNNL_ARG_DIFF_DST, formats.dy},
          {DNNL_ARG_DIFF_WEIGHTS, target},
          {DNNL_ARG_DIFF_BIAS, memory(bias_, engine, parameter_gradient(1))}});
  if (reordered) steps.backward.push_back(reorder_operation(target, plain));
}

void Convolution::plan_backward_data(Steps& steps, const Formats& formats) const {
  const dnnl::engine& engine = site().engine;
  const memory::dim stride = signed_dim(options_.stride);
  const memory::dim padding = signed_dim(options_.padding);
  const dnnl::convolution_backward_data::primitive_desc description(
      {direct,
       formats.dx.get_desc(),
       any_format(plain_weights_.dims()),
       formats.dy.get_desc(),
       {stride, stride},
       {padding, padding},
       {padding, padding}},
      own_scratchpad(),
      engine,
      formats.forward);
  memory weights = formats.plain_weights;
  if (description.weights_desc() != plain_weights_) {
    weights = memory(description.weights_desc(), engine);
    steps.backward.push_back(reorder_operation(formats.plain_weights, weights));
  }
  steps.backward.emplace_back(
      engine,
      dnnl::convolution_backward_data(description),
      description.scratchpad_desc(),
      Operation::Arguments{
          {DNNL_ARG_DIFF_DST, formats.dy},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_DIFF_SRC, formats.dx}});
}

}  // namespace stagger
