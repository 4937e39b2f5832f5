#include "engine/replay_backend.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "observability/check.hpp"

namespace stagger {
namespace {

/// So many values of a layer differ from iteration to iteration: spread over it, so that every
/// group's pieces do.
constexpr std::size_t changing_max = 256;

constexpr float gradient_scale = 1.0F / 64;

/// Differs from place to place, so that a piece that lands elsewhere shows in the parameters.
void fill(std::span<float> gradient, std::size_t index) {
  constexpr std::uint32_t step = 2654435761U;  // 2^32 over the golden ratio
  auto state = static_cast<std::uint32_t>(index) * 40503U;
  for (float& value : gradient) {
    state += step;
    value = (static_cast<float>(state >> 8U) * 0x1.0p-24F - 0.5F) * gradient_scale;
  }
}

}  // namespace

ReplayBackend::ReplayBackend(
    const Architecture& architecture, std::vector<LayerProfile> profile, Options options)
    : architecture_(architecture), profile_(std::move(profile)), options_(options) {
  CHECK_EQ(profile_.size(), architecture_.layer_names().size());
}

void ReplayBackend::bind(Arena& /*values*/, Arena& gradients) {
  gradients_ = &gradients;
  for (std::size_t index = 0; index < parameters().size(); ++index)
    fill(gradients.parameter(index), index);
}

std::size_t ReplayBackend::load(Iteration iteration, WorkerId rank) {
  iteration_ = iteration;
  rank_ = rank;
  stretch_ = 1.0;
  if (options_.jitter > 0) {
    RandomSequence random = chance(fnv1a("jitter"));
    stretch_ += options_.jitter * double{random.uniform()};
  }
  return options_.batch;
}

void ReplayBackend::backward(LayerRange layers) {
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    const std::size_t layer = parameters()[index].layer;
    if (layer < layers.begin || layer >= layers.end) continue;
    const std::span<float> gradient = gradients_->parameter(index);
    const std::size_t stride = (gradient.size() + changing_max - 1) / changing_max;
    RandomSequence random = chance(layer);
    for (std::size_t at = 0; at < gradient.size(); at += stride)
      gradient[at] = (random.uniform() - 0.5F) * gradient_scale;
  }
}

Duration ReplayBackend::forward_time(LayerRange layers) const {
  Duration total{0};
  for (std::size_t layer = layers.begin; layer < layers.end; ++layer)
    total += profile_[layer].forward;
  return stretched(total);
}

Duration ReplayBackend::backward_time(LayerRange layers) const {
  Duration total{0};
  for (std::size_t layer = layers.begin; layer < layers.end; ++layer)
    total += profile_[layer].backward;
  return stretched(total);
}

Duration ReplayBackend::stretched(Duration time) const {
  return stretch_ == 1.0 ? time : from_seconds(to_seconds(time) * stretch_);
}

/// One sequence per iteration, rank and purpose.
RandomSequence ReplayBackend::chance(std::uint64_t purpose) const {
  const RandomSequence key(options_.seed ^ purpose * 0x9E3779B97F4A7C15U, iteration_.value());
  RandomSequence mixed = key;
  const std::uint64_t seed = (std::uint64_t{mixed.next()} << 32U) | mixed.next();
  return RandomSequence(seed, rank_.value());
}

}  // namespace stagger
