#include "engine/layers/layer.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "observability/check.hpp"

namespace stagger {

std::vector<std::size_t> LayerSite::extents() const {
  std::vector<std::size_t> result;
  for (const dnnl::memory::dim extent : input.format.dims()) {
    result.push_back(static_cast<std::size_t>(extent));
  }
  return result;
}

void Layer::bind(std::vector<std::span<float>> values, std::vector<std::span<float>> gradients) {
  CHECK_EQ(values.size(), parameters_.size());
  CHECK_EQ(gradients.size(), parameters_.size());
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    CHECK_EQ(values[index].size(), parameters_[index].size());
    CHECK_EQ(gradients[index].size(), parameters_[index].size());
  }
  bound_values_ = std::move(values);
  bound_gradients_ = std::move(gradients);
  if (!parameters_.empty()) steps_.clear();  // the primitives hold the old addresses
}

void Layer::prepare(std::size_t batch) {
  if (steps_.contains(batch)) return;
  CHECK_EQ(bound_values_.size(), parameters_.size());
  steps_.emplace(batch, plan(batch));
}

void Layer::forward(const dnnl::stream& stream, std::size_t batch) const {
  for (const Operation& operation : steps_.at(batch).forward) {
    operation.run(stream);
  }
}

void Layer::backward(const dnnl::stream& stream, std::size_t batch) const {
  for (const Operation& operation : steps_.at(batch).backward) {
    operation.run(stream);
  }
}

void Layer::allocate_output(const dnnl::memory::desc& format) {
  own_values_ = AlignedFloats(floats_of(format));
  own_gradients_ = AlignedFloats(floats_of(format));
  output_ = {
      .format = format,
      .values = own_values_.span().data(),
      .gradients = own_gradients_.span().data()};
}

void Layer::share_output(const dnnl::memory::desc& format) {
  CHECK_EQ(format.get_size(), site_.input.format.get_size());
  output_ = {.format = format, .values = site_.input.values, .gradients = site_.input.gradients};
}

void Layer::declare_parameter(const std::string& suffix, std::vector<std::size_t> shape) {
  parameters_.push_back({.name = name() + "." + suffix, .shape = std::move(shape)});
}

dnnl::memory Layer::input_values(std::size_t batch) const {
  return {narrowed(site_.input.format, batch), site_.engine, site_.input.values};
}

dnnl::memory Layer::input_gradients(std::size_t batch) const {
  CHECK(site_.input.gradients != nullptr, name(), "nobody asks for these gradients");
  return {narrowed(site_.input.format, batch), site_.engine, site_.input.gradients};
}

dnnl::memory Layer::output_values(std::size_t batch) const {
  return {narrowed(output_.format, batch), site_.engine, output_.values};
}

dnnl::memory Layer::output_gradients(std::size_t batch) const {
  return {narrowed(output_.format, batch), site_.engine, output_.gradients};
}

}  // namespace stagger
