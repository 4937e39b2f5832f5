#include "engine/dataset.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/byte_reader.hpp"
#include "kernels/rng.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t rank_max = 4;
constexpr std::uint8_t unsigned_byte = 0x08;  // IDX's code for the only element type read here

Error refuse(const std::string& source, const std::string& detail) {
  return {.code = Errc::storage, .detail = source + ": " + detail};
}

/// Fills `target`, or says at which byte the file ended.
Result<void> read_all(
    ByteReader& reader,
    std::span<std::uint8_t> target,
    std::uint64_t offset,
    const std::string& source,
    std::string_view field) {
  const Result<std::size_t> count = reader.read(target);
  if (!count) return count.error();
  if (*count == target.size()) return {};
  return refuse(
      source,
      fmt::format(
          "truncated: {} of {} bytes at byte {}, ends at byte {}",
          field,
          target.size(),
          offset,
          offset + *count));
}

/// Reads the header: how many values of which shape follow. The product is bounded by what the
/// reader can still give.
Result<std::vector<std::size_t>> read_dimensions(ByteReader& reader, const std::string& source) {
  std::array<std::uint8_t, 4> magic{};
  Result<void> read = read_all(reader, magic, 0, source, "magic");
  if (!read) return read.error();
  const std::size_t rank = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != unsigned_byte || rank < 1 || rank > rank_max) {
    return refuse(
        source,
        fmt::format(
            "magic at byte 0 is {:02x}, expected 00 00 08 and a rank of 1 to {}",
            fmt::join(magic, " "),
            rank_max));
  }
  std::vector<std::size_t> dimensions;
  std::uint64_t product = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::array<std::uint8_t, 4> word{};
    const std::uint64_t offset = 4 + 4 * axis;
    read = read_all(reader, word, offset, source, "dimension");
    if (!read) return read.error();
    const std::uint32_t extent = (std::uint32_t{word[0]} << 24U) | (std::uint32_t{word[1]} << 16U) |
                                 (std::uint32_t{word[2]} << 8U) | std::uint32_t{word[3]};
    if (extent == 0) {
      return refuse(source, fmt::format("dimension {} at byte {} is 0", axis, offset));
    }
    dimensions.push_back(extent);
    if (product > reader.remaining_max() / extent) {
      return refuse(
          source,
          fmt::format(
              "dimensions {} at byte 4 promise more values than the {} bytes that can follow",
              fmt::join(dimensions, " x "),
              reader.remaining_max()));
    }
    product *= extent;
  }
  return dimensions;
}

Result<void> check_pair(
    const IdxArray& images,
    const std::string& images_path,
    const IdxArray& labels,
    const std::string& labels_path,
    std::size_t classes) {
  const std::size_t rank = images.dimensions.size();
  if (rank < 3) {
    return refuse(images_path, fmt::format("rank {}, expected 3 or 4 for images", rank));
  }
  if (labels.dimensions.size() != 1) {
    return refuse(
        labels_path, fmt::format("rank {}, expected 1 for labels", labels.dimensions.size()));
  }
  if (images.dimensions[0] != labels.dimensions[0]) {
    return refuse(
        labels_path,
        fmt::format(
            "{} labels, expected {} as images in {}",
            labels.dimensions[0],
            images.dimensions[0],
            images_path));
  }
  const auto wrong =
      std::find_if(labels.values.begin(), labels.values.end(), [classes](std::uint8_t label) {
        return label >= classes;
      });
  if (wrong == labels.values.end()) return {};
  return refuse(
      labels_path,
      fmt::format(
          "label {} at byte {}, expected less than {} classes",
          *wrong,
          8 + (wrong - labels.values.begin()),
          classes));
}

Result<IdxArray> read_idx_file(const Storage& storage, const std::string& path) {
  const Result<std::vector<std::byte>> bytes = storage.read(path);
  if (!bytes) return bytes.error();
  return decode_idx(*bytes, path);
}

}  // namespace

std::size_t Dataset::sample_size() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

Result<IdxArray> decode_idx(std::span<const std::byte> bytes, const std::string& source) {
  const std::unique_ptr<ByteReader> reader = open_bytes(bytes, source);
  Result<std::vector<std::size_t>> dimensions = read_dimensions(*reader, source);
  if (!dimensions) return dimensions.error();
  IdxArray array{.dimensions = std::move(*dimensions), .values = {}};
  std::size_t count = 1;
  for (const std::size_t extent : array.dimensions) {
    count *= extent;
  }
  array.values.resize(count);
  const std::uint64_t offset = 4 + 4 * array.dimensions.size();
  const Result<void> read = read_all(*reader, array.values, offset, source, "values");
  if (!read) return read.error();
  const Result<void> end = reader->expect_end();
  if (!end) return end.error();
  return array;
}

Result<Dataset> read_idx(
    const Storage& storage,
    const std::string& images_path,
    const std::string& labels_path,
    std::size_t classes) {
  Result<IdxArray> images = read_idx_file(storage, images_path);
  if (!images) return images.error();
  Result<IdxArray> labels = read_idx_file(storage, labels_path);
  if (!labels) return labels.error();
  const Result<void> checked = check_pair(*images, images_path, *labels, labels_path, classes);
  if (!checked) return checked.error();

  Dataset dataset;
  dataset.shape.assign(images->dimensions.begin() + 1, images->dimensions.end());
  if (dataset.shape.size() == 2) dataset.shape.insert(dataset.shape.begin(), 1);  // one channel
  dataset.classes = classes;
  dataset.pixels = std::move(images->values);
  dataset.labels = std::move(labels->values);
  return dataset;
}

BatchOrder::BatchOrder(
    std::size_t samples,
    std::size_t batch,
    std::uint32_t workers,
    std::uint64_t seed,
    bool keep_last)
    : samples_(samples), batch_(batch), workers_(workers), seed_(seed), keep_last_(keep_last) {
  CHECK(samples > 0 && samples < (std::size_t{1} << 32U), "samples", samples);
  CHECK(batch > 0 && workers > 0, "batch", batch, "workers", workers);
}

std::uint64_t BatchOrder::iterations_per_epoch() const {
  const std::uint64_t global = std::uint64_t{batch_} * workers_;
  return keep_last_ ? (samples_ + global - 1) / global : samples_ / global;
}

std::span<const std::uint32_t> BatchOrder::samples(std::uint64_t iteration, std::uint32_t rank) {
  CHECK_LT(rank, workers_);
  CHECK_LT(0U, iteration);
  const std::uint64_t per_epoch = iterations_per_epoch();
  CHECK(per_epoch > 0, "fewer samples than a global batch", samples_);
  const std::uint64_t epoch = (iteration - 1) / per_epoch;
  if (epoch != epoch_) shuffle_epoch(epoch);

  const std::size_t global = batch_ * workers_;
  const std::size_t begin = (iteration - 1) % per_epoch * global;
  const std::size_t size = std::min(global, samples_ - begin);
  // Level shares: the first size % workers ranks have one sample more. A full batch gives batch_ to
  // each.
  const std::size_t share = size / workers_;
  const std::size_t rest = size % workers_;
  const std::size_t first = begin + rank * share + std::min<std::size_t>(rank, rest);
  return std::span(permutation_).subspan(first, share + (rank < rest ? 1 : 0));
}

void BatchOrder::shuffle_epoch(std::uint64_t epoch) {
  permutation_.resize(samples_);
  std::iota(permutation_.begin(), permutation_.end(), 0U);
  // Fisher-Yates. A sequence of its own per epoch, so that an epoch needs none before it.
  RandomSequence random(seed_, fnv1a("batch order") + epoch);
  for (std::size_t left = samples_; left > 1; --left) {
    const std::uint32_t chosen = random.below(static_cast<std::uint32_t>(left));
    std::swap(permutation_[left - 1], permutation_[chosen]);
  }
  epoch_ = epoch;
}

void gather(const Dataset& dataset, std::span<const std::uint32_t> samples, Batch& batch) {
  std::array<float, 256> normalised{};
  for (std::size_t pixel = 0; pixel < normalised.size(); ++pixel) {
    const float share = static_cast<float>(pixel) / 255.0F;
    normalised[pixel] = (share - dataset.mean) / dataset.deviation;
  }
  const std::size_t sample_size = dataset.sample_size();
  batch.size = samples.size();
  batch.inputs.resize(samples.size() * sample_size);
  batch.labels.resize(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK_LT(samples[i], dataset.size());
    const auto pixels = std::span(dataset.pixels).subspan(samples[i] * sample_size, sample_size);
    std::transform(
        pixels.begin(),
        pixels.end(),
        batch.inputs.begin() + static_cast<std::ptrdiff_t>(i * sample_size),
        [&normalised](std::uint8_t pixel) { return normalised[pixel]; });
    batch.labels[i] = dataset.labels[samples[i]];
  }
}

}  // namespace stagger
