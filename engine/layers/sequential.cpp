#include "engine/layers/sequential.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset.hpp"
#include "engine/layers/dnnl_support.hpp"
#include "observability/check.hpp"

namespace stagger {

Sequential::Sequential(
    std::string name, const std::vector<std::size_t>& input, std::size_t batch_max)
    : name_(std::move(name)),
      batch_max_(batch_max),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {
  use_one_thread();
  if (batch_max == 0) throw std::invalid_argument(name_ + ": batches without samples");
  if (input.size() != 3) {
    throw std::invalid_argument(name_ + ": input is not channels x height x width");
  }
  dnnl::memory::dims extents{static_cast<dnnl::memory::dim>(batch_max)};
  constexpr std::size_t extent_max = std::size_t{1} << 16U;
  for (const std::size_t extent : input) {
    if (extent == 0 || extent > extent_max) {
      throw std::invalid_argument(name_ + ": input extent " + std::to_string(extent));
    }
    sample_size_ *= extent;
    extents.push_back(static_cast<dnnl::memory::dim>(extent));
  }
  input_values_ = AlignedFloats(batch_max * sample_size_);
  input_ = {
      .format = {extents, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nchw},
      .values = input_values_.span().data(),
      .gradients = nullptr};
  labels_.reserve(batch_max);
}

Activation Sequential::last_output() const {
  return layers_.empty() ? input_ : layers_.back()->output();
}

void Sequential::append_parameters() {
  const Layer& layer = *layers_.back();
  layer_names_.push_back(layer.name());
  for (ParameterInfo parameter : layer.parameters()) {
    parameter.layer = layers_.size() - 1;
    parameters_.push_back(std::move(parameter));
  }
}

void Sequential::finish() {
  CHECK(!layers_.empty());
  const dnnl::memory::dims extents = last_output().format.dims();
  CHECK_EQ(extents.size(), 2U);
  classes_ = static_cast<std::size_t>(extents[1]);
}

void Sequential::bind(Arena& values, Arena& gradients) {
  CHECK(values.layout().parameters() == parameters_, name_, "values of another model");
  CHECK(gradients.layout().parameters() == parameters_, name_, "gradients of another model");
  std::size_t next = 0;
  for (const auto& layer : layers_) {
    std::vector<std::span<float>> layer_values;
    std::vector<std::span<float>> layer_gradients;
    for (std::size_t i = 0; i < layer->parameters().size(); ++i, ++next) {
      layer_values.push_back(values.parameter(next));
      layer_gradients.push_back(gradients.parameter(next));
    }
    layer->bind(std::move(layer_values), std::move(layer_gradients));
  }
  bound_ = true;
  batch_ = 0;
}

void Sequential::load(const Batch& batch) {
  CHECK(bound_, name_, "not bound");
  CHECK(batch.size >= 1 && batch.size <= batch_max_, "batch", batch.size, "of at most", batch_max_);
  CHECK_EQ(batch.inputs.size(), batch.size * sample_size_);
  CHECK_EQ(batch.labels.size(), batch.size);
  std::copy(batch.inputs.begin(), batch.inputs.end(), input_values_.span().begin());
  labels_.assign(batch.labels.begin(), batch.labels.end());
  if (batch.size == batch_) return;
  use_one_thread();
  for (const auto& layer : layers_) {
    layer->prepare(batch.size);
  }
  batch_ = batch.size;
}

void Sequential::forward(LayerRange layers) {
  CHECK(batch_ > 0, name_, "nothing loaded");
  CHECK(layers.begin <= layers.end && layers.end <= layers_.size(), layers.begin, layers.end);
  use_one_thread();
  for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
    layers_[layer]->forward(stream_, batch_);
  }
  if (layers.end != layers_.size()) return;
  // Scores, loss and its gradient belong together, and are tiny beside the layers.
  const std::span<float> gradients(last_output().gradients, batch_ * classes_);
  result_ = softmax_cross_entropy(scores(), labels_, classes_, gradients);
}

double Sequential::loss() {
  return result_.loss;
}

std::size_t Sequential::correct() {
  return result_.correct;
}

void Sequential::backward(LayerRange layers) {
  CHECK(batch_ > 0, name_, "nothing loaded");
  CHECK(layers.begin <= layers.end && layers.end <= layers_.size(), layers.begin, layers.end);
  use_one_thread();
  for (std::size_t layer = layers.end; layer > layers.begin; --layer) {
    layers_[layer - 1]->backward(stream_, batch_);
  }
}

std::span<const float> Sequential::scores() const {
  return {last_output().values, batch_ * classes_};
}

double Sequential::forward_flops(std::size_t layer) const {
  return layers_.at(layer)->forward_flops();
}

}  // namespace stagger
