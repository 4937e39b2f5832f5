#include "tests/support/training.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/dataset.hpp"
#include "engine/model.hpp"
#include "kernels/elastic.hpp"
#include "net/sim/storage.hpp"

namespace stagger {
namespace {

/// Fashion-MNIST where the system has it; empty elsewhere.
Dataset fashion_mnist(const std::string& part) {
  const std::string directory = "/usr/share/datasets/fashion-mnist/";
  SimStorage storage;
  const std::string images = part + "-images-idx3-ubyte.gz";
  const std::string labels = part + "-labels-idx1-ubyte.gz";
  for (const std::string& name : {images, labels}) {
    const std::vector<std::byte> bytes = file_bytes(directory + name);
    if (bytes.empty()) return {};
    EXPECT_TRUE(storage.write_atomic(name, bytes));
  }
  Result<Dataset> dataset = read_idx(storage, images, labels, 10);
  EXPECT_TRUE(dataset) << describe(dataset.error());
  dataset->mean = 0.2860F;
  dataset->deviation = 0.3530F;
  return *dataset;
}

TEST(Training, lowers_lenet5s_loss_on_fashion_mnist_within_a_few_dozen_steps) {
  const Dataset dataset = fashion_mnist("t10k");
  if (dataset.size() == 0) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  ASSERT_EQ(dataset.size(), 10000U);
  ASSERT_EQ(dataset.shape, (std::vector<std::size_t>{1, 28, 28}));

  BoundModel bound(make_model({}, 32), 1);
  Arena velocity(bound.values.layout());
  BatchOrder order(2000, 32, 1, 1, false);
  Batch batch;
  std::vector<double> losses;
  for (std::uint64_t iteration = 1; iteration <= 90; ++iteration) {
    gather(dataset, order.samples(iteration, 0), batch);
    losses.push_back(bound.forward_backward(batch));
    cpu::sgd_step(
        bound.values.all(),
        bound.gradients.all(),
        velocity.all(),
        {.learning_rate = 0.02F, .momentum = 0.9F});
  }
  const double first = std::accumulate(losses.begin(), losses.begin() + 10, 0.0) / 10;
  const double last = std::accumulate(losses.end() - 10, losses.end(), 0.0) / 10;
  EXPECT_GT(first, 2.0);
  EXPECT_LT(last, 1.0);

  // Samples that were not trained on.
  std::vector<std::uint32_t> held_back(32);
  std::iota(held_back.begin(), held_back.end(), 5000U);
  gather(dataset, held_back, batch);
  bound.forward(batch);
  EXPECT_GE(bound.model->correct(), 16U);
}

}  // namespace
}  // namespace stagger
