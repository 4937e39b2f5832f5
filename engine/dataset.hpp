#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/error.hpp"
#include "net/storage.hpp"

namespace stagger {

/// Samples in memory as bytes; normalised when a batch is gathered.
struct Dataset {
  std::vector<std::size_t> shape;  ///< of one sample: channels, height, width
  std::size_t classes = 0;
  std::vector<std::uint8_t> pixels;  ///< size() * product(shape)
  std::vector<std::uint8_t> labels;
  float mean = 0.0F;  ///< of pixel/255
  float deviation = 1.0F;

  std::size_t size() const { return labels.size(); }

  std::size_t sample_size() const;
};

/// Inputs (normalised) and labels of one minibatch. Reused from step to step.
struct Batch {
  std::size_t size = 0;
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
};

/// Reads an IDX pair (MNIST's format, plain or .gz, told by content). Errors name the file, the
/// byte offset or field, what was found and what was expected (magic, counts, dimensions,
/// truncation, labels beyond `classes`).
Result<Dataset> read_idx(
    const Storage& storage,
    const std::string& images_path,
    const std::string& labels_path,
    std::size_t classes);

/// Decodes one IDX file's bytes; what read_idx and the fuzz corpus use.
struct IdxArray {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> values;
};

Result<IdxArray> decode_idx(std::span<const std::byte> bytes, const std::string& source);

/// Which samples a rank reads in an iteration. One global permutation per epoch, seeded; rank p
/// takes the p-th slice of each global batch. Pure; the position is the iteration, so resuming
/// needs nothing else.
class BatchOrder {
 public:
  BatchOrder(
      std::size_t samples,
      std::size_t batch,  ///< per worker
      std::uint32_t workers,
      std::uint64_t seed,
      bool keep_last);  ///< keep a short last global batch (split as evenly as it goes)

  std::uint64_t iterations_per_epoch() const;

  /// `iteration` counts from 1 over all epochs. The result is valid until the next call; it may be
  /// empty only for a kept short batch that does not reach this rank.
  std::span<const std::uint32_t> samples(std::uint64_t iteration, std::uint32_t rank);

 private:
  void shuffle_epoch(std::uint64_t epoch);

  std::size_t samples_;
  std::size_t batch_;
  std::uint32_t workers_;
  std::uint64_t seed_;
  bool keep_last_;
  std::uint64_t epoch_ = ~std::uint64_t{0};
  std::vector<std::uint32_t> permutation_;
};

/// Fills `batch` with the normalised samples.
void gather(const Dataset& dataset, std::span<const std::uint32_t> samples, Batch& batch);

}  // namespace stagger
