#include "engine/replay_profile.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/job.hpp"
#include "net/sim/storage.hpp"

namespace stagger {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string mistake(const std::function<void()>& call) {
  try {
    call();
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

class ReplayProfile : public testing::Test {
 protected:
  std::string mistake_in_file(const std::string& text) {
    write("p.csv", text);
    return mistake([this] { load_profile(storage_, "p.csv"); });
  }

  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(storage_.write_atomic(path, std::as_bytes(std::span(text))).has_value());
  }

  SimStorage storage_;
};

std::vector<LayerProfile> layers(std::size_t count) {
  std::vector<LayerProfile> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(
        {.name = "layer" + std::to_string(i),
         .parameters = 100,
         .bytes = 400,
         .forward = 10us,
         .backward = 20us});
  }
  return made;
}

TEST_F(ReplayProfile, that_is_shipped_has_exactly_the_parameters_of_its_network) {
  const std::map<std::string, std::uint64_t> totals{
      {"bert_base", 109'482'240},
      {"gpt2_small", 124'439'808},
      {"resnet50", 25'557'032},
      {"vgg16", 138'357'544}};
  std::vector<std::string> names;
  for (const auto& [name, total] : totals) {
    names.push_back(name);
    std::uint64_t parameters = 0;
    for (const LayerProfile& layer : load_profile(storage_, name)) {
      parameters += layer.parameters;
      EXPECT_EQ(layer.bytes, layer.parameters * 4) << name << " " << layer.name;
      EXPECT_GT(layer.forward, Duration{0}) << name << " " << layer.name;
      EXPECT_GE(layer.backward, layer.forward) << name << " " << layer.name;
    }
    EXPECT_EQ(parameters, total) << name;
    EXPECT_EQ(mistake([&] { scaled_profile(load_profile(storage_, name), {}, name); }), "accepted");
  }
  EXPECT_EQ(shipped_profile_names(), names);
}

TEST_F(ReplayProfile, of_gpt2_has_its_largest_tensor_first_and_a_last_layer_with_nothing_to_send) {
  const auto profile = load_profile(storage_, "gpt2_small");
  EXPECT_EQ(profile.front().parameters, 38'597'376U);
  EXPECT_EQ(profile.back().parameters, 0U);
}

TEST_F(ReplayProfile, that_is_a_file_is_read) {
  write("p.csv", "name,params,bytes,t_fwd_us,t_bwd_us\na,10,40,1.5,0\nrelu,0,0,0,2\n");
  const auto profile = load_profile(storage_, "p.csv");
  ASSERT_EQ(profile.size(), 2U);
  EXPECT_EQ(profile[0].forward, 1500ns);
  EXPECT_EQ(profile[1].backward, 2us);
}

TEST_F(ReplayProfile, that_is_missing_names_those_that_are_shipped) {
  EXPECT_THAT(
      mistake([this] { load_profile(storage_, "vgg61"); }),
      AllOf(
          HasSubstr("\"vgg61\""),
          HasSubstr("bert_base, gpt2_small, resnet50, vgg16"),
          HasSubstr("did you mean \"vgg16\"?")));
}

TEST_F(ReplayProfile, that_is_wrong_is_refused_with_the_place) {
  EXPECT_THAT(mistake_in_file(""), HasSubstr("p.csv:1:1: no layer with parameters"));
  EXPECT_THAT(mistake_in_file("relu,0,0,1,1\n"), HasSubstr("no layer with parameters"));
  EXPECT_THAT(mistake_in_file("a,10,40,-1,1\n"), HasSubstr("p.csv:1:9: t_fwd_us = -1 is negative"));
  EXPECT_THAT(mistake_in_file("a,10,40,1\n"), HasSubstr("t_bwd_us is missing"));
  EXPECT_THAT(mistake_in_file("a,10,40,1,\n"), HasSubstr("t_bwd_us is missing"));
  EXPECT_THAT(mistake_in_file("a,10,40,1,nan\n"), HasSubstr("not a number"));
}

TEST(ScaledProfile, shrinks_layers_alike_and_leaves_each_one_parameter) {
  auto profile = layers(2);
  profile[1].parameters = 1;
  profile[1].bytes = 4;
  profile.push_back({.name = "relu", .forward = 2us, .backward = 4us});
  const auto scaled =
      scaled_profile(profile, {.time = 0.5, .bytes = 0.25, .backward_ratio = {}}, "p");
  EXPECT_EQ(scaled[0].parameters, 25U);
  EXPECT_EQ(scaled[0].bytes, 100U);
  EXPECT_EQ(scaled[0].forward, 5us);
  EXPECT_EQ(scaled[0].backward, 10us);
  EXPECT_EQ(scaled[1].parameters, 1U);
  EXPECT_EQ(scaled[2].parameters, 0U);
  EXPECT_EQ(scaled[2].forward, 1us);
}

TEST(ScaledProfile, takes_another_ratio_of_backward_to_forward) {
  const auto scaled =
      scaled_profile(layers(1), {.time = 2.0, .bytes = 1.0, .backward_ratio = 1.5}, "p");
  EXPECT_EQ(scaled[0].forward, 20us);
  EXPECT_EQ(scaled[0].backward, 30us);
}

TEST(ScaledProfile, refuses_what_no_run_can_be_made_of) {
  const auto refusal = [](std::vector<LayerProfile> profile, const ReplayScale& scale = {}) {
    return mistake([&] { scaled_profile(std::move(profile), scale, "p"); });
  };
  EXPECT_THAT(refusal(layers(4097)), HasSubstr("p: 4097 layers; at most 4096"));
  EXPECT_EQ(refusal(layers(4096)), "accepted");
  auto twice = layers(2);
  twice[1].name = "layer0";
  EXPECT_THAT(refusal(twice), HasSubstr("p: layer \"layer0\" is there twice"));
  for (const char* const name : {"a b", "", "\"", "\xff"}) {
    auto unreadable = layers(1);
    unreadable[0].name = name;
    if (unreadable[0].name.empty()) unreadable[0].name = std::string(101, 'x');
    EXPECT_THAT(refusal(unreadable), HasSubstr("printable ASCII"));
  }
  auto huge = layers(1);
  huge[0].bytes = std::uint64_t{1} << 50U;
  EXPECT_THAT(refusal(huge), HasSubstr("lower backend.bytes_scale"));
  auto endless = layers(4000);
  for (LayerProfile& layer : endless)
    layer.backward = std::chrono::hours(1);
  EXPECT_THAT(
      refusal(endless, {.time = 1000.0, .bytes = 1.0, .backward_ratio = {}}),
      HasSubstr("lower backend.time_scale"));
}

TEST(ReplayArchitecture, has_a_vector_for_each_layer_with_parameters) {
  auto profile = layers(2);
  profile.insert(profile.begin() + 1, LayerProfile{.name = "relu"});
  const ReplayArchitecture architecture("p", profile);
  EXPECT_EQ(architecture.layer_names(), (std::vector<std::string>{"layer0", "relu", "layer1"}));
  ASSERT_EQ(architecture.parameters().size(), 2U);
  EXPECT_EQ(architecture.parameters()[1].name, "layer1.weight");
  EXPECT_EQ(architecture.parameters()[1].shape, std::vector<std::size_t>{100});
  EXPECT_EQ(architecture.parameters()[1].layer, 2U);
}

}  // namespace
}  // namespace stagger
