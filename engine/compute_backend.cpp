#include "engine/compute_backend.hpp"

#include <utility>

namespace stagger {

ComputeBackend::ComputeBackend(
    std::unique_ptr<Model> model, const Dataset& dataset, BatchOrder order, Options options)
    : model_(std::move(model)), dataset_(dataset), order_(std::move(order)), options_(options) {}

std::size_t ComputeBackend::load(Iteration iteration, WorkerId rank) {
  const auto samples = order_.samples(iteration.value(), rank.value());
  if (samples.empty()) return 0;
  gather(dataset_, samples, batch_);
  model_->load(batch_);
  return batch_.size;
}

Duration ComputeBackend::forward_time(LayerRange layers) const {
  double flops = 0.0;
  for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
    flops += model_->forward_flops(layer);
  }
  return from_seconds(flops * static_cast<double>(batch_.size) / options_.flops_per_second);
}

Duration ComputeBackend::backward_time(LayerRange layers) const {
  return 2 * forward_time(layers);  // a gradient by the input and one by the weights
}

}  // namespace stagger
