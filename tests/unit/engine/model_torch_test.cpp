#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/model.hpp"
#include "engine/safetensors.hpp"
#include "kernels/elastic.hpp"
#include "tests/support/groups.hpp"
#include "tests/support/training.hpp"

// Goal: our models are PyTorch's, in values, gradients and the optimiser's steps.
// Method: we draw weights and a batch and write them as safetensors;
// tests/golden/make_torch_reference.py computes the same with torch and writes what it got; we read
// that back and compare.
namespace stagger {
namespace {

constexpr int missing_torch = 77;  // the script's exit status

struct Case {
  Case(std::string name, ModelSpec model, std::size_t samples, SgdConstants constants, int count)
      : title(std::move(name)),
        spec(std::move(model)),
        batch(samples),
        sgd(constants),
        steps(count) {}

  std::string title;
  ModelSpec spec;
  std::size_t batch;
  SgdConstants sgd;
  int steps;

  friend std::ostream& operator<<(std::ostream& out, const Case& value) {
    return out << value.title;
  }
};

/// A directory of its own for the two files.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stagger-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }

  ~ScratchDirectory() { std::filesystem::remove_all(path_); }

  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(
      reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// The parameters and the batch as one set of tensors.
Arena request(const BoundModel& bound, const Batch& batch, const ModelSpec& spec) {
  std::vector<ParameterInfo> tensors = bound.model->parameters();
  const std::size_t parameters = tensors.size();
  std::vector<std::size_t> shape = spec.input;
  shape.insert(shape.begin(), batch.size);
  tensors.push_back({.name = "batch.inputs", .shape = shape});
  tensors.push_back({.name = "batch.labels", .shape = {batch.size}});
  Arena arena(ArenaLayout(tensors, groups_of(bound.model->layer_names().size())));
  for (std::size_t index = 0; index < parameters; ++index) {
    const std::span<const float> values = bound.values.parameter(index);
    std::copy(values.begin(), values.end(), arena.parameter(index).begin());
  }
  std::copy(batch.inputs.begin(), batch.inputs.end(), arena.parameter(parameters).begin());
  std::transform(
      batch.labels.begin(),
      batch.labels.end(),
      arena.parameter(parameters + 1).begin(),
      [](std::int32_t label) { return static_cast<float>(label); });
  return arena;
}

/// Where torch's answer is read into: scores, loss, every gradient, every parameter afterwards.
Arena answer(const BoundModel& bound, const Batch& batch, const ModelSpec& spec) {
  std::vector<ParameterInfo> tensors{
      {.name = "scores", .shape = {batch.size, spec.classes}}, {.name = "loss", .shape = {1}}};
  for (const std::string prefix : {"gradient.", "after."}) {
    for (const ParameterInfo& parameter : bound.model->parameters()) {
      tensors.push_back({.name = prefix + parameter.name, .shape = parameter.shape});
    }
  }
  return Arena(ArenaLayout(tensors, groups_of(1)));
}

/// Largest difference, relative to the largest value of the tensor.
void expect_close(
    std::span<const float> found, std::span<const float> expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  float largest = 1e-3F;
  float difference = 0.0F;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(difference, 2e-5F * largest) << what << ", largest value " << largest;
}

class ModelsAgainstTorch : public testing::TestWithParam<Case> {};

TEST_P(ModelsAgainstTorch, have_the_same_values_gradients_and_steps) {
  const Case& given = GetParam();
  BoundModel bound(make_model(given.spec, given.batch), 17);
  std::size_t sample_size = 1;
  for (const std::size_t extent : given.spec.input) {
    sample_size *= extent;
  }
  const Batch batch = random_batch(given.batch, sample_size, given.spec.classes, 18);

  const ScratchDirectory scratch;
  const std::map<std::string, std::string> metadata{
      {"model", given.spec.name},
      {"learning_rate", std::to_string(given.sgd.learning_rate)},
      {"momentum", std::to_string(given.sgd.momentum)},
      {"weight_decay", std::to_string(given.sgd.weight_decay)},
      {"steps", std::to_string(given.steps)}};
  write_file(
      scratch.file("in.safetensors"),
      encode_safetensors(request(bound, batch, given.spec), metadata));
  const std::string command = std::string("/usr/bin/python3 ") + STAGGER_SOURCE_DIR +
                              "/tests/golden/make_torch_reference.py " +
                              scratch.file("in.safetensors") + " " +
                              scratch.file("out.safetensors");
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == missing_torch) GTEST_SKIP() << "PyTorch is not installed";
  ASSERT_EQ(WEXITSTATUS(status), 0) << command;
  Arena expected = answer(bound, batch, given.spec);
  const auto read =
      decode_safetensors(file_bytes(scratch.file("out.safetensors")), "torch's answer", expected);
  ASSERT_TRUE(read) << describe(read.error());

  const double loss = bound.forward_backward(batch);
  expect_close(bound.model->scores(), expected.parameter(0), "scores");
  EXPECT_NEAR(loss, static_cast<double>(expected.parameter(1)[0]), 1e-5);
  const std::vector<ParameterInfo>& parameters = bound.model->parameters();
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    expect_close(
        bound.gradients.parameter(index),
        expected.parameter(2 + index),
        "gradient of " + parameters[index].name);
  }

  Arena velocity(bound.values.layout());
  for (int step = 0; step < given.steps; ++step) {
    bound.forward_backward(batch);
    cpu::sgd_step(bound.values.all(), bound.gradients.all(), velocity.all(), given.sgd);
  }
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    expect_close(
        bound.values.parameter(index),
        expected.parameter(2 + parameters.size() + index),
        parameters[index].name + " afterwards");
  }
}

std::vector<Case> cases() {
  const SgdConstants plain{.learning_rate = 0.05F};
  const SgdConstants heavy{.learning_rate = 0.02F, .momentum = 0.9F, .weight_decay = 1e-2F};
  const ModelSpec wide{.name = "mlp", .hidden = {64, 32}};
  const ModelSpec odd{.name = "mlp", .input = {2, 3, 5}, .classes = 3, .hidden = {7}};
  return {
      {"lenet5_batch_32", {}, 32, heavy, 4},
      {"lenet5_batch_1", {}, 1, plain, 1},
      {"lenet5_batch_17", {}, 17, plain, 2},
      {"lenet5_rgb", {.input = {3, 32, 32}, .classes = 5}, 6, heavy, 3},
      {"mlp_batch_32", wide, 32, heavy, 4},
      {"mlp_odd_shapes", odd, 3, heavy, 5},
      {"mlp_without_hidden_layers", {.name = "mlp", .hidden = {}}, 8, plain, 3}};
}

INSTANTIATE_TEST_SUITE_P(
    All,
    ModelsAgainstTorch,
    testing::ValuesIn(cases()),
    [](const testing::TestParamInfo<Case>& instance) { return instance.param.title; });

}  // namespace
}  // namespace stagger
