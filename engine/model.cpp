#include "engine/model.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/layers/convolution.hpp"
#include "engine/layers/flatten.hpp"
#include "engine/layers/linear.hpp"
#include "engine/layers/pool.hpp"
#include "engine/layers/relu.hpp"
#include "engine/layers/sequential.hpp"
#include "kernels/rng.hpp"

namespace stagger {

namespace {

std::unique_ptr<Model> make_mlp(const ModelSpec& spec, std::size_t batch_max) {
  auto model = std::make_unique<Sequential>(spec.name, spec.input, batch_max);
  model->add<Flatten>("flatten");
  std::size_t number = 1;
  for (const std::size_t width : spec.hidden) {
    model->add<Linear>("fc" + std::to_string(number), width);
    model->add<Relu>("relu" + std::to_string(number));
    ++number;
  }
  model->add<Linear>("fc" + std::to_string(number), spec.classes);
  model->finish();
  return model;
}

/// LeNet-5 as PyTorch users write it: ReLU for tanh, max pooling for the trained averages, full
/// connections throughout.
std::unique_ptr<Model> make_lenet5(const ModelSpec& spec, std::size_t batch_max) {
  auto model = std::make_unique<Sequential>(spec.name, spec.input, batch_max);
  model->add<Convolution>("conv1", ConvolutionOptions{.outputs = 6, .kernel = 5, .padding = 2});
  model->add<Relu>("relu1");
  model->add<Pool>("pool1", PoolKind::max, std::size_t{2});
  model->add<Convolution>("conv2", ConvolutionOptions{.outputs = 16, .kernel = 5});
  model->add<Relu>("relu2");
  model->add<Pool>("pool2", PoolKind::max, std::size_t{2});
  model->add<Flatten>("flatten");
  model->add<Linear>("fc1", std::size_t{120});
  model->add<Relu>("relu3");
  model->add<Linear>("fc2", std::size_t{84});
  model->add<Relu>("relu4");
  model->add<Linear>("fc3", spec.classes);
  model->finish();
  return model;
}

/// Inputs that one output of the layer sees. A bias is told by its layer's weight, which has two
/// extents or more; a layer of vectors alone sees one.
std::size_t fan_in(std::span<const ParameterInfo> parameters, std::size_t layer) {
  for (const ParameterInfo& parameter : parameters) {
    if (parameter.layer != layer || parameter.shape.size() < 2) continue;
    return parameter.size() / parameter.shape[0];
  }
  return 1;
}

}  // namespace

std::vector<std::string> model_names() {
  return {"lenet5", "mlp"};
}

std::unique_ptr<Model> make_model(const ModelSpec& spec, std::size_t batch_max) {
  if (spec.name == "lenet5") return make_lenet5(spec, batch_max);
  if (spec.name == "mlp") return make_mlp(spec, batch_max);
  throw std::invalid_argument("unknown model: " + spec.name);
}

void initialize(Arena& values, std::uint64_t seed) {
  const std::vector<ParameterInfo>& parameters = values.layout().parameters();
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const std::size_t inputs = fan_in(parameters, parameters[index].layer);
    const float bound = 1.0F / std::sqrt(static_cast<float>(inputs));
    RandomSequence random(seed, fnv1a(parameters[index].name));
    for (float& value : values.parameter(index)) {
      value = (2.0F * random.uniform() - 1.0F) * bound;
    }
  }
}

std::uint64_t schema_hash(std::span<const ParameterInfo> parameters) {
  std::uint64_t hash = fnv1a("");
  for (const ParameterInfo& parameter : parameters) {
    hash = fnv1a(parameter.name, hash);
    for (const std::size_t extent : parameter.shape) {
      hash = fnv1a("," + std::to_string(extent), hash);
    }
    hash = fnv1a(";", hash);
  }
  return hash;
}

}  // namespace stagger
