#include "engine/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/elastic.hpp"
#include "tests/support/groups.hpp"
#include "tests/support/training.hpp"

namespace stagger {
namespace {

constexpr std::size_t pixels = 784;

std::unique_ptr<Model> lenet5(std::size_t batch_max) {
  return make_model({}, batch_max);
}

std::vector<float> parameter_values(const Arena& arena) {
  std::vector<float> all;
  for (std::size_t index = 0; index < arena.layout().parameters().size(); ++index) {
    const std::span<const float> values = arena.parameter(index);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// A few steps of plain SGD; the parameters after them, in parameter order.
std::vector<float> train(BoundModel& bound, int steps) {
  for (int step = 0; step < steps; ++step) {
    bound.forward_backward(random_batch(8, pixels, 10, static_cast<std::uint64_t>(step)));
    cpu::sgd_step(bound.values.all(), bound.gradients.all(), {}, {.learning_rate = 0.1F});
  }
  return parameter_values(bound.values);
}

TEST(Lenet5, has_the_layers_and_parameters_of_its_definition) {
  const std::unique_ptr<Model> model = lenet5(2);
  EXPECT_EQ(
      model->layer_names(),
      (std::vector<std::string>{
          "conv1",
          "relu1",
          "pool1",
          "conv2",
          "relu2",
          "pool2",
          "flatten",
          "fc1",
          "relu3",
          "fc2",
          "relu4",
          "fc3"}));
  using Shape = std::vector<std::size_t>;
  const std::vector<ParameterInfo> expected{
      {.name = "conv1.weight", .shape = Shape{6, 1, 5, 5}, .layer = 0},
      {.name = "conv1.bias", .shape = Shape{6}, .layer = 0},
      {.name = "conv2.weight", .shape = Shape{16, 6, 5, 5}, .layer = 3},
      {.name = "conv2.bias", .shape = Shape{16}, .layer = 3},
      {.name = "fc1.weight", .shape = Shape{120, 400}, .layer = 7},
      {.name = "fc1.bias", .shape = Shape{120}, .layer = 7},
      {.name = "fc2.weight", .shape = Shape{84, 120}, .layer = 9},
      {.name = "fc2.bias", .shape = Shape{84}, .layer = 9},
      {.name = "fc3.weight", .shape = Shape{10, 84}, .layer = 11},
      {.name = "fc3.bias", .shape = Shape{10}, .layer = 11}};
  EXPECT_EQ(model->parameters(), expected);
  std::size_t total = 0;
  for (const ParameterInfo& parameter : model->parameters()) {
    total += parameter.size();
  }
  EXPECT_EQ(total, 61706U);
}

TEST(Mlp, has_a_layer_per_hidden_size_and_one_for_the_classes) {
  const std::unique_ptr<Model> model =
      make_model({.name = "mlp", .input = {3, 4, 5}, .classes = 7, .hidden = {11, 13}}, 2);
  EXPECT_EQ(
      model->layer_names(),
      (std::vector<std::string>{"flatten", "fc1", "relu1", "fc2", "relu2", "fc3"}));
  ASSERT_EQ(model->parameters().size(), 6U);
  EXPECT_EQ(model->parameters()[0].shape, (std::vector<std::size_t>{11, 60}));
  EXPECT_EQ(model->parameters()[4].shape, (std::vector<std::size_t>{7, 13}));
  EXPECT_EQ(model->parameters()[4].layer, 5U);
  EXPECT_EQ(make_model({.name = "mlp", .hidden = {}}, 1)->parameters().size(), 2U);
}

TEST(MakeModel, refuses_unknown_names_and_impossible_shapes) {
  EXPECT_THROW(make_model({.name = "lenet6"}, 1), std::invalid_argument);
  EXPECT_THROW(make_model({.input = {1, 8, 8}}, 1), std::invalid_argument);
  EXPECT_THROW(make_model({.classes = 0}, 1), std::invalid_argument);
  EXPECT_THROW(make_model({.name = "mlp", .hidden = {0}}, 1), std::invalid_argument);
  EXPECT_THROW(make_model({}, 0), std::invalid_argument);
  for (const std::string& name : model_names()) {
    EXPECT_EQ(make_model({.name = name}, 1)->name(), name);
  }
}

TEST(MakeModel, takes_other_images_and_classes) {
  BoundModel bound(make_model({.input = {3, 32, 32}, .classes = 100}, 4));
  EXPECT_EQ(bound.values.layout().parameters()[4].shape[1], 576U);
  const Batch batch = random_batch(4, std::size_t{3} * 32 * 32, 100, 1);
  EXPECT_NEAR(bound.forward_backward(batch), std::log(100.0), 0.3);
}

TEST(Model, forgets_nothing_when_its_layers_run_one_by_one) {
  BoundModel whole(lenet5(8));
  BoundModel single(lenet5(8));
  const Batch batch = random_batch(8, pixels, 10, 1);
  whole.forward_backward(batch);
  single.model->load(batch);
  const std::size_t layers = single.model->layer_names().size();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    single.model->forward({.begin = layer, .end = layer + 1});
  }
  EXPECT_EQ(single.model->loss(), whole.model->loss());
  for (std::size_t layer = layers; layer > 0; --layer) {
    single.model->backward({.begin = layer - 1, .end = layer});
  }
  EXPECT_EQ(parameter_values(single.gradients), parameter_values(whole.gradients));
}

TEST(Model, trains_to_the_same_bits_in_every_run_grouping_and_thread) {
  BoundModel first(lenet5(8), 5);
  const std::vector<float> expected = train(first, 5);

  BoundModel again(lenet5(8), 5);
  EXPECT_EQ(train(again, 5), expected);

  BoundModel grouped(lenet5(8), 5, groups_of(12, {9, 4, 1}));
  EXPECT_EQ(train(grouped, 5), expected);

  BoundModel elsewhere(lenet5(8), 5);
  std::vector<float> found;
  std::thread thread([&elsewhere, &found]() { found = train(elsewhere, 5); });
  thread.join();
  EXPECT_EQ(found, expected);

  BoundModel other(lenet5(8), 6);
  EXPECT_NE(train(other, 5), expected);
}

TEST(Model, follows_its_parameters_to_new_memory) {
  BoundModel bound(lenet5(8), 5);
  const Batch batch = random_batch(8, pixels, 10, 1);
  const double loss = bound.forward_backward(batch);
  const std::vector<float> expected = parameter_values(bound.gradients);

  Arena values(ArenaLayout(bound.model->parameters(), groups_of(12, {6})));
  Arena gradients(values.layout());
  values.assign(bound.values);
  std::fill(bound.values.all().begin(), bound.values.all().end(), 0.0F);
  bound.model->bind(values, gradients);
  EXPECT_EQ(bound.forward_backward(batch), loss);
  EXPECT_EQ(parameter_values(gradients), expected);
}

TEST(Model, counts_correct_predictions) {
  BoundModel bound(lenet5(8), 5);
  Batch batch = random_batch(8, pixels, 10, 1);
  bound.forward(batch);
  std::vector<std::int32_t> predicted;
  for (std::size_t sample = 0; sample < 8; ++sample) {
    const std::span<const float> row = bound.model->scores().subspan(sample * 10, 10);
    predicted.push_back(
        static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  batch.labels = predicted;
  batch.labels[3] = (batch.labels[3] + 1) % 10;
  bound.forward(batch);
  EXPECT_EQ(bound.model->correct(), 7U);
}

TEST(ModelDeathTest, refuses_batches_that_do_not_fit) {
  BoundModel bound(lenet5(4));
  EXPECT_DEATH(bound.model->load(random_batch(5, pixels, 10, 1)), "CHECK failed");
  EXPECT_DEATH(bound.model->load(random_batch(2, pixels - 1, 10, 1)), "CHECK failed");
  EXPECT_DEATH(bound.model->forward(bound.all_layers()), "nothing loaded");
}

TEST(Model, tells_the_work_of_its_layers) {
  const std::unique_ptr<Model> model = lenet5(1);
  EXPECT_EQ(model->forward_flops(0), 2.0 * 25 * 6 * 28 * 28);
  EXPECT_EQ(model->forward_flops(3), 2.0 * 150 * 16 * 10 * 10);
  EXPECT_EQ(model->forward_flops(7), 2.0 * 400 * 120);
}

TEST(Initialize, stays_within_pytorchs_bounds_and_fills_them) {
  BoundModel bound(lenet5(1), 9);
  const std::map<std::string, double> fan_ins{
      {"conv1", 25}, {"conv2", 150}, {"fc1", 400}, {"fc2", 120}, {"fc3", 84}};
  for (std::size_t index = 0; index < bound.model->parameters().size(); ++index) {
    const std::string& name = bound.model->parameters()[index].name;
    const double limit = 1.0 / std::sqrt(fan_ins.at(name.substr(0, name.find('.'))));
    double largest = 0.0;
    double total = 0.0;
    for (const float value : bound.values.parameter(index)) {
      largest = std::max(largest, std::abs(static_cast<double>(value)));
      total += static_cast<double>(value);
    }
    EXPECT_LE(largest, limit * (1 + 1e-6)) << name;
    EXPECT_GE(largest, limit * 0.6) << name;
    EXPECT_LT(std::abs(total), 3.0 * limit * std::sqrt(bound.values.parameter(index).size()))
        << name;
  }
}

TEST(Initialize, gives_the_same_numbers_whatever_the_groups) {
  const BoundModel one(lenet5(1), 9);
  const BoundModel many(lenet5(1), 9, groups_of(12, {8, 5}));
  EXPECT_EQ(parameter_values(one.values), parameter_values(many.values));
}

TEST(SchemaHash, tells_names_shapes_and_order) {
  const std::vector<ParameterInfo> base{
      {.name = "a", .shape = {2, 3}, .layer = 0}, {.name = "b", .shape = {4}, .layer = 1}};
  const std::uint64_t hash = schema_hash(base);
  EXPECT_EQ(schema_hash(base), hash);
  std::vector<ParameterInfo> other = base;
  other[0].shape = {3, 2};
  EXPECT_NE(schema_hash(other), hash);
  other = base;
  other[1].name = "c";
  EXPECT_NE(schema_hash(other), hash);
  other = base;
  std::swap(other[0], other[1]);
  EXPECT_NE(schema_hash(other), hash);
  other = base;
  other[0].shape = {23};
  EXPECT_NE(schema_hash(other), hash);
}

}  // namespace
}  // namespace stagger
