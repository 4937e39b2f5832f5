#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/layers/convolution.hpp"
#include "engine/layers/flatten.hpp"
#include "engine/layers/linear.hpp"
#include "engine/layers/pool.hpp"
#include "engine/layers/relu.hpp"
#include "engine/layers/sequential.hpp"
#include "engine/layers/softmax_cross_entropy.hpp"
#include "kernels/rng.hpp"
#include "tensor/xt.hpp"
#include "tests/support/training.hpp"

namespace stagger {
namespace {

using Shape = std::vector<std::size_t>;

/// A network under test: what it reads, and how it is built on that.
struct Network {
  Network(std::string title, Shape extents, std::function<void(Sequential&)> builder)
      : name(std::move(title)), input(std::move(extents)), build(std::move(builder)) {}

  std::string name;
  Shape input;
  std::function<void(Sequential&)> build;
};

/// Every layer with odd extents, once as the first layer and once above another (whose gradients
/// are then its business).
std::vector<Network> networks() {
  return {
      {"linear",
       {3, 1, 5},
       [](Sequential& net) {
         net.add<Flatten>("flatten");
         net.add<Linear>("fc1", std::size_t{7});
         net.add<Linear>("fc2", std::size_t{3});
       }},
      {"relu",
       {1, 3, 3},
       [](Sequential& net) {
         net.add<Flatten>("flatten");
         net.add<Linear>("fc1", std::size_t{11});
         net.add<Relu>("relu1");
         net.add<Linear>("fc2", std::size_t{4});
       }},
      {"convolution",
       {1, 7, 5},
       [](Sequential& net) {
         net.add<Convolution>("conv1", ConvolutionOptions{.outputs = 3, .kernel = 3});
         net.add<Convolution>("conv2", ConvolutionOptions{.outputs = 2, .kernel = 2});
         net.add<Flatten>("flatten");
       }},
      {"strided and padded convolution",
       {3, 9, 7},
       [](Sequential& net) {
         net.add<Convolution>(
             "conv1", ConvolutionOptions{.outputs = 5, .kernel = 3, .stride = 2, .padding = 2});
         net.add<Convolution>(
             "conv2", ConvolutionOptions{.outputs = 17, .kernel = 3, .stride = 2, .padding = 1});
         net.add<Flatten>("flatten");
         net.add<Linear>("fc", std::size_t{3});
       }},
      {"max pool",
       {2, 7, 9},
       [](Sequential& net) {
         net.add<Convolution>("conv", ConvolutionOptions{.outputs = 3, .kernel = 2});
         net.add<Pool>("pool", PoolKind::max, std::size_t{2});
         net.add<Flatten>("flatten");
       }},
      {"average pool",
       {2, 8, 11},
       [](Sequential& net) {
         net.add<Convolution>("conv", ConvolutionOptions{.outputs = 18, .kernel = 2});
         net.add<Relu>("relu");
         net.add<Pool>("pool", PoolKind::average, std::size_t{3});
         net.add<Flatten>("flatten");
       }},
      {"pool of the input", {3, 6, 6}, [](Sequential& net) {
         net.add<Pool>("pool", PoolKind::average, std::size_t{2});
         net.add<Flatten>("flatten");
         net.add<Linear>("fc", std::size_t{3});
       }}};
}

std::unique_ptr<Sequential> build(const Network& network, std::size_t batch_max) {
  auto model = std::make_unique<Sequential>(network.name, network.input, batch_max);
  network.build(*model);
  model->finish();
  return model;
}

std::size_t product(const Shape& shape) {
  std::size_t result = 1;
  for (const std::size_t extent : shape) {
    result *= extent;
  }
  return result;
}

std::size_t outputs_of(BoundModel& bound, std::size_t sample_size) {
  bound.forward(random_batch(1, sample_size, 1, 1));
  return bound.model->scores().size();
}

Arena copy_of(const Arena& arena) {
  Arena copy(arena.layout());
  copy.assign(arena);
  return copy;
}

/// The loss around one value: its central difference, and by how much its slope bends between the
/// two sides.
struct Difference {
  double slope = 0.0;
  double bend = 0.0;
};

Difference difference(BoundModel& bound, const Batch& batch, float& value, float step) {
  const float middle = value;
  const double at = bound.forward(batch);
  value = middle + step;
  const double above = bound.forward(batch);
  value = middle - step;
  const double below = bound.forward(batch);
  value = middle;
  const auto width = static_cast<double>(step);
  return {.slope = (above - below) / (2.0 * width), .bend = ((above - at) - (at - below)) / width};
}

/// Compares every single gradient. A smooth loss bends half as much over half the width; where it
/// does not, a kink (of a relu, of a maximum) lies between and the difference says nothing. Few
/// values may be excused so.
void expect_gradients_of_differences(BoundModel& bound, const Batch& batch) {
  bound.forward_backward(batch);
  const Arena gradients = copy_of(bound.gradients);
  std::size_t total = 0;
  std::size_t kinks = 0;
  for (std::size_t index = 0; index < bound.model->parameters().size(); ++index) {
    const std::span<float> values = bound.values.parameter(index);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Difference wide = difference(bound, batch, values[i], 6e-3F);
      const Difference narrow = difference(bound, batch, values[i], 3e-3F);
      const double tolerance = 3e-4 + 3e-3 * std::abs(narrow.slope);
      ++total;
      if (std::abs(narrow.bend - wide.bend / 2) > tolerance / 2) {
        ++kinks;
        continue;
      }
      ASSERT_NEAR(static_cast<double>(gradients.parameter(index)[i]), narrow.slope, tolerance)
          << bound.model->parameters()[index].name << "[" << i << "]";
    }
  }
  EXPECT_LE(kinks * 4, total);
}

TEST(Layers, have_the_gradients_of_finite_differences) {
  for (const Network& network : networks()) {
    for (const std::size_t size : {5U, 1U}) {
      SCOPED_TRACE(network.name + ", batch " + std::to_string(size));
      BoundModel bound(build(network, 5), 3);
      const std::size_t classes = outputs_of(bound, product(network.input));
      expect_gradients_of_differences(
          bound, random_batch(size, product(network.input), classes, 4));
    }
  }
}

TEST(Layers, treat_a_sample_alike_in_any_batch) {
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name);
    BoundModel bound(build(network, 5), 3);
    const std::size_t classes = outputs_of(bound, product(network.input));
    const Batch batch = random_batch(5, product(network.input), classes, 5);
    bound.forward(batch);
    const std::vector<float> expected(bound.model->scores().begin(), bound.model->scores().end());
    for (const std::size_t size : {1U, 3U, 4U}) {
      bound.forward(first_samples(batch, size));
      ASSERT_EQ(bound.model->scores().size(), size * classes);
      for (std::size_t i = 0; i < size * classes; ++i) {
        ASSERT_NEAR(bound.model->scores()[i], expected[i], 1e-5F);
      }
    }
  }
}

TEST(Layers, overwrite_gradients_instead_of_adding_to_them) {
  const Network network = networks()[3];
  BoundModel bound(build(network, 4), 3);
  const Batch batch = random_batch(4, product(network.input), 3, 5);
  bound.forward_backward(batch);
  const std::vector<float> once(bound.gradients.all().begin(), bound.gradients.all().end());
  std::fill(bound.gradients.all().begin(), bound.gradients.all().end(), 1e6F);
  bound.forward_backward(batch);
  for (std::size_t index = 0; index < bound.model->parameters().size(); ++index) {
    const ArenaLayout::Span place = bound.gradients.layout().parameter(index);
    const std::span<const float> found = bound.gradients.parameter(index);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), once.data() + place.offset));
  }
}

/// The definition, one output at a time.
double convolved(
    const Batch& batch,
    const Shape& input,
    const Arena& values,
    const ConvolutionOptions& options,
    const std::array<std::size_t, 4>& at) {
  const auto x = as_tensor(
      std::span(batch.inputs),
      std::array<std::size_t, 4>{batch.size, input[0], input[1], input[2]});
  const auto w = as_tensor(
      values.parameter(0),
      std::array<std::size_t, 4>{options.outputs, input[0], options.kernel, options.kernel});
  double sum = static_cast<double>(values.parameter(1)[at[1]]);
  for (std::size_t channel = 0; channel < input[0]; ++channel) {
    for (std::size_t i = 0; i < options.kernel * options.kernel; ++i) {
      const std::size_t row = at[2] * options.stride + i / options.kernel;
      const std::size_t column = at[3] * options.stride + i % options.kernel;
      const bool inside = row >= options.padding && row < options.padding + input[1] &&
                          column >= options.padding && column < options.padding + input[2];
      if (!inside) continue;
      sum +=
          static_cast<double>(x(at[0], channel, row - options.padding, column - options.padding)) *
          static_cast<double>(w(at[1], channel, i / options.kernel, i % options.kernel));
    }
  }
  return sum;
}

TEST(Convolution, is_the_sum_of_its_definition) {
  const std::vector<std::pair<Shape, ConvolutionOptions>> cases{
      {{1, 5, 5}, {.outputs = 1, .kernel = 1}},
      {{3, 7, 9}, {.outputs = 4, .kernel = 3}},
      {{6, 14, 14}, {.outputs = 16, .kernel = 5}},
      {{2, 8, 6}, {.outputs = 19, .kernel = 5, .stride = 3, .padding = 2}},
      {{17, 5, 5}, {.outputs = 3, .kernel = 2, .stride = 2, .padding = 1}}};
  for (const auto& [input, options] : cases) {
    auto model = std::make_unique<Sequential>("convolution", input, 3);
    model->add<Convolution>("conv", options);
    model->add<Flatten>("flatten");
    model->finish();
    BoundModel bound(std::move(model), 7);
    const Batch batch = random_batch(3, product(input), 1, 8);
    bound.forward(batch);
    const std::size_t height =
        (input[1] + 2 * options.padding - options.kernel) / options.stride + 1;
    const std::size_t width =
        (input[2] + 2 * options.padding - options.kernel) / options.stride + 1;
    const std::size_t per_sample = options.outputs * height * width;
    ASSERT_EQ(bound.model->scores().size(), 3 * per_sample);
    for (std::size_t i = 0; i < 3 * per_sample; ++i) {
      const std::size_t pixel = i % (height * width);
      const std::array<std::size_t, 4> at{
          i / per_sample, i / (height * width) % options.outputs, pixel / width, pixel % width};
      ASSERT_NEAR(
          static_cast<double>(bound.model->scores()[i]),
          convolved(batch, input, bound.values, options, at),
          1e-4);
    }
  }
}

TEST(Pool, takes_the_largest_or_the_mean_and_leaves_the_rest_out) {
  // 1 x 3 x 5, pooled by 2: one row of two windows; the last row and column are the rest.
  const Batch batch{
      .size = 1, .inputs = {1, 5, -2, -8, 90, 3, 3, -1, -5, 90, 90, 90, 90, 90, 90}, .labels = {0}};
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    auto model = std::make_unique<Sequential>("pool", Shape{1, 3, 5}, 1);
    model->add<Pool>("pool", kind, std::size_t{2});
    model->add<Flatten>("flatten");
    model->finish();
    BoundModel bound(std::move(model));
    bound.forward(batch);
    ASSERT_EQ(bound.model->scores().size(), 2U);
    EXPECT_EQ(bound.model->scores()[0], kind == PoolKind::max ? 5.0F : 3.0F);
    EXPECT_EQ(bound.model->scores()[1], kind == PoolKind::max ? -1.0F : -4.0F);
  }
}

/// Whether the first layer is refused on this input.
bool refused(const Shape& input, const std::function<void(Sequential&)>& add) {
  try {
    Sequential model("impossible", input, 2);
    add(model);
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  }
}

TEST(Layers, refuse_impossible_shapes) {
  const auto linear = [](Sequential& net) {
    net.add<Linear>("fc", std::size_t{3});
  };
  const auto pool = [](Sequential& net) {
    net.add<Pool>("pool", PoolKind::max, std::size_t{2});
  };
  const auto wide = [](Sequential& net) {
    net.add<Convolution>("conv", ConvolutionOptions{.outputs = 1, .kernel = 5});
  };
  const auto empty = [](Sequential& net) {
    net.add<Convolution>("conv", ConvolutionOptions{.outputs = 0, .kernel = 1});
  };
  EXPECT_TRUE(refused({1, 4, 4}, linear)) << "not flat";
  EXPECT_TRUE(refused({1, 1, 4}, pool));
  EXPECT_FALSE(refused({1, 2, 4}, pool));
  EXPECT_TRUE(refused({1, 5, 4}, wide));
  EXPECT_FALSE(refused({1, 5, 5}, wide));
  EXPECT_TRUE(refused({1, 4, 4}, empty));
}

TEST(Layers, refuse_impossible_inputs) {
  EXPECT_THROW(Sequential("none", {1, 0, 4}, 1), std::invalid_argument);
  EXPECT_THROW(Sequential("flat", {4, 4}, 1), std::invalid_argument);
  EXPECT_THROW(Sequential("huge", {1, std::size_t{1} << 40U, 4}, 1), std::invalid_argument);
  EXPECT_THROW(Sequential("no batch", {1, 4, 4}, 0), std::invalid_argument);
}

TEST(SoftmaxCrossEntropy, is_the_logarithm_of_the_classes_for_equal_scores) {
  const std::vector<float> scores(8, 3.0F);
  std::vector<float> gradients(8);
  const LossResult result =
      softmax_cross_entropy(scores, std::vector<std::int32_t>{0, 3}, 4, gradients);
  EXPECT_NEAR(result.loss, std::log(4.0), 1e-6);
  EXPECT_EQ(result.correct, 1U);  // the first of equals
  const std::vector<float> expected{
      -0.375F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, -0.375F};
  EXPECT_EQ(gradients, expected);
}

TEST(SoftmaxCrossEntropy, survives_scores_that_overflow_an_exponential) {
  const std::vector<float> scores{1000.0F, 0.0F, -1000.0F, 0.0F};
  std::vector<float> gradients(4);
  const LossResult result =
      softmax_cross_entropy(scores, std::vector<std::int32_t>{0, 0}, 2, gradients);
  EXPECT_NEAR(result.loss, 500.0, 1e-3);  // 0 for the first, 1000 for the second
  EXPECT_EQ(result.correct, 1U);
  EXPECT_EQ(gradients, (std::vector<float>{0.0F, 0.0F, -0.5F, 0.5F}));
}

TEST(SoftmaxCrossEntropyDeathTest, refuses_labels_beyond_the_classes) {
  const std::vector<float> scores(4);
  std::vector<float> gradients(4);
  for (const std::int32_t label : {4, -1}) {
    EXPECT_DEATH(
        softmax_cross_entropy(scores, std::vector<std::int32_t>{label}, 4, gradients),
        "CHECK failed");
  }
}

}  // namespace
}  // namespace stagger
