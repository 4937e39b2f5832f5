#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/dataset.hpp"
#include "engine/model.hpp"
#include "tensor/arena.hpp"

/// What tests of models and data share.
namespace stagger {

/// A bound model with its memory, in one group or in several.
struct BoundModel {
  explicit BoundModel(std::unique_ptr<Model> network, std::uint64_t seed = 1);
  BoundModel(
      std::unique_ptr<Model> network, std::uint64_t seed, const std::vector<LayerRange>& groups);

  LayerRange all_layers() const { return {.begin = 0, .end = model->layer_names().size()}; }

  /// Loads, goes forward; the loss.
  double forward(const Batch& batch);

  /// The same, then backward.
  double forward_backward(const Batch& batch);

  std::unique_ptr<Model> model;
  Arena values;
  Arena gradients;
};

/// Random inputs in [-1, 1) and random labels.
Batch random_batch(
    std::size_t size, std::size_t sample_size, std::size_t classes, std::uint64_t seed);

/// The first samples of a batch.
Batch first_samples(const Batch& batch, std::size_t size);

/// A real file's bytes; empty where there is none.
std::vector<std::byte> file_bytes(const std::string& path);

/// gzip as the program of that name writes it.
std::vector<std::byte> gzip(std::span<const std::byte> bytes);

}  // namespace stagger
