#include "engine/layers/pool.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stagger {

namespace {

using dnnl::memory;

dnnl::algorithm algorithm_of(PoolKind kind) {
  return kind == PoolKind::max ? dnnl::algorithm::pooling_max
                               : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::pooling_forward::primitive_desc describe(
    const LayerSite& site,
    PoolKind kind,
    std::size_t size,
    const memory::desc& x,
    const memory::desc& y) {
  const auto extent = static_cast<memory::dim>(size);
  return {
      {dnnl::prop_kind::forward_training,
       algorithm_of(kind),
       x,
       y,
       {extent, extent},
       {extent, extent},
       {0, 0},
       {0, 0}},
      own_scratchpad(),
      site.engine};
}

}  // namespace

Pool::Pool(LayerSite place, PoolKind kind, std::size_t size)
    : Layer(std::move(place)), kind_(kind), size_(size) {
  const std::vector<std::size_t> extents = site().extents();
  if (extents.size() != 4) throw std::invalid_argument(name() + ": input is not an image");
  if (size == 0 || extents[2] < size || extents[3] < size) {
    throw std::invalid_argument(
        name() + ": a window of " + std::to_string(size) + " does not fit an input of " +
        std::to_string(extents[2]) + " x " + std::to_string(extents[3]));
  }
  const memory::dims pooled{
      static_cast<memory::dim>(extents[0]),
      static_cast<memory::dim>(extents[1]),
      static_cast<memory::dim>(extents[2] / size),
      static_cast<memory::dim>(extents[3] / size)};
  const memory::desc any(pooled, memory::data_type::f32, memory::format_tag::any);
  allocate_output(describe(site(), kind, size, site().input.format, any).dst_desc());
}

double Pool::forward_flops() const {
  const memory::dims y = output().format.dims();
  return static_cast<double>(y[1] * y[2] * y[3]) * static_cast<double>(size_ * size_);
}

Layer::Steps Pool::plan(std::size_t batch) {
  const dnnl::engine& engine = site().engine;
  const memory x = input_values(batch);
  const memory y = output_values(batch);
  const auto forward = describe(site(), kind_, size_, x.get_desc(), y.get_desc());
  Operation::Arguments forward_arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};

  // Which of its window's values was the largest, from forward to backward.
  memory winners;
  if (kind_ == PoolKind::max) {
    winners = memory(forward.workspace_desc(), engine);
    forward_arguments.emplace_back(DNNL_ARG_WORKSPACE, winners);
  }
  Steps steps;
  steps.forward.emplace_back(
      engine, dnnl::pooling_forward(forward), forward.scratchpad_desc(), forward_arguments);
  if (site().input.gradients == nullptr) return steps;

  const memory dx = input_gradients(batch);
  const memory dy = output_gradients(batch);
  const auto extent = static_cast<memory::dim>(size_);
  const dnnl::pooling_backward::primitive_desc backward(
      {algorithm_of(kind_),
       dx.get_desc(),
       dy.get_desc(),
       {extent, extent},
       {extent, extent},
       {0, 0},
       {0, 0}},
      own_scratchpad(),
      engine,
      forward);
  Operation::Arguments backward_arguments{{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}};
  if (kind_ == PoolKind::max) backward_arguments.emplace_back(DNNL_ARG_WORKSPACE, winners);
  steps.backward.emplace_back(
      engine, dnnl::pooling_backward(backward), backward.scratchpad_desc(), backward_arguments);
  return steps;
}

}  // namespace stagger
