#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/config.hpp"
#include "engine/dataset.hpp"

/// A small learnable task and a config that fits it, for whole runs in tests.
namespace stagger {

/// One-channel 4x4 pictures of four classes: each class is bright in its own quarter, over seeded
/// noise.
Dataset synthetic_dataset(std::size_t samples, std::uint64_t seed);

/// Three workers train a perceptron of three trained layers on it: interleaved, T = 3, 12
/// iterations.
Config synthetic_config();

/// Enough samples for every config derived from synthetic_config().
constexpr std::size_t synthetic_samples = 640;

}  // namespace stagger
