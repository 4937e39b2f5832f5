#include "tests/support/training.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "kernels/rng.hpp"
#include "observability/check.hpp"

namespace stagger {

BoundModel::BoundModel(std::unique_ptr<Model> network, std::uint64_t seed)
    : model(std::move(network)),
      values(ArenaLayout(model->parameters(), {all_layers()})),
      gradients(values.layout()) {
  initialize(values, seed);
  model->bind(values, gradients);
}

BoundModel::BoundModel(
    std::unique_ptr<Model> network, std::uint64_t seed, const std::vector<LayerRange>& groups)
    : model(std::move(network)),
      values(ArenaLayout(model->parameters(), groups)),
      gradients(values.layout()) {
  initialize(values, seed);
  model->bind(values, gradients);
}

double BoundModel::forward(const Batch& batch) {
  model->load(batch);
  model->forward(all_layers());
  return model->loss();
}

double BoundModel::forward_backward(const Batch& batch) {
  const double loss = forward(batch);
  model->backward(all_layers());
  return loss;
}

Batch random_batch(
    std::size_t size, std::size_t sample_size, std::size_t classes, std::uint64_t seed) {
  RandomSequence random(seed, fnv1a("batch"));
  Batch batch{.size = size, .inputs = {}, .labels = {}};
  for (std::size_t i = 0; i < size * sample_size; ++i) {
    batch.inputs.push_back(2.0F * random.uniform() - 1.0F);
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t label = random.below(static_cast<std::uint32_t>(classes));
    batch.labels.push_back(static_cast<std::int32_t>(label));
  }
  return batch;
}

Batch first_samples(const Batch& batch, std::size_t size) {
  CHECK(size <= batch.size);
  Batch part = batch;
  part.size = size;
  part.inputs.resize(batch.inputs.size() / batch.size * size);
  part.labels.resize(size);
  return part;
}

std::vector<std::byte> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> letters{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(letters.size());
  std::transform(letters.begin(), letters.end(), bytes.begin(), [](char letter) {
    return static_cast<std::byte>(letter);
  });
  return bytes;
}

std::vector<std::byte> gzip(std::span<const std::byte> bytes) {
  z_stream stream{};
  constexpr int gzip_format = 16 + MAX_WBITS;
  CHECK_EQ(
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_format, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::vector<Bytef> input(bytes.size());
  std::transform(bytes.begin(), bytes.end(), input.begin(), [](std::byte byte) {
    return std::to_integer<Bytef>(byte);
  });
  std::vector<Bytef> output(deflateBound(&stream, input.size()));
  stream.next_in = input.data();
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = output.data();
  stream.avail_out = static_cast<uInt>(output.size());
  CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  output.resize(stream.total_out);
  deflateEnd(&stream);
  std::vector<std::byte> result(output.size());
  std::transform(
      output.begin(), output.end(), result.begin(), [](Bytef byte) { return std::byte{byte}; });
  return result;
}

}  // namespace stagger
