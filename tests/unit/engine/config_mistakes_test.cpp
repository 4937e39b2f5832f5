#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config.hpp"
#include "engine/config_schema.hpp"
#include "tests/unit/engine/config_fixture.hpp"

/// Every key misspelt, every type and range broken: the message must name the place and help.
namespace stagger {
namespace {

using test::data_table;
using test::mistake;
using test::name_of;
using test::parse;
using test::table_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// What a slip of the finger makes of a name.
std::vector<std::string> misspellings(const std::string& name) {
  std::vector<std::string> words{name + "x"};
  std::string word = name;
  word[name.size() / 2] = word[name.size() / 2] == 'q' ? 'z' : 'q';
  words.push_back(word);
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    word = name;
    std::swap(word[i], word[i + 1]);
    if (word != name) words.push_back(word);
  }
  for (std::size_t i = 0; i < name.size() && name.size() > 2; ++i) {
    word = name;
    word.erase(i, 1);
    words.push_back(word);
  }
  return words;
}

TEST(Config, finds_the_key_behind_every_misspelling) {
  for (const ConfigField& field : config_fields()) {
    for (const std::string& word : misspellings(name_of(field.key))) {
      const std::string table = table_of(field.key);
      const std::string wrong = table + "." + word;
      const std::string line = wrong + " = 1\n";
      try {
        parse_config(line, "c.toml", {});
        ADD_FAILURE() << wrong << " was accepted";
      } catch (const ConfigError& error) {
        EXPECT_EQ(
            std::string(error.what()),
            "c.toml:1:" + std::to_string(table.size() + 2) + ": " + wrong +
                ": unknown key; did you mean " + field.key + "?");
      }
    }
  }
}

TEST(Config, finds_the_table_behind_a_misspelling) {
  EXPECT_EQ(mistake("[snyc]\nperiod = 3\n"), "c.toml:7:2: snyc: unknown table; did you mean sync?");
  EXPECT_THAT(
      mistake("[qwertyuiop]\n"),
      AllOf(HasSubstr("unknown table; there are: job, model, data"), HasSubstr("timeouts")));
}

TEST(Config, finds_a_key_that_stands_in_the_wrong_table) {
  EXPECT_EQ(
      mistake("[sync]\nlr = 0.1\n"),
      "c.toml:8:1: sync.lr: unknown key; did you mean optimizer.lr?");
  EXPECT_EQ(
      mistake("[sync]\nqwertyuiop = 1\n"),
      "c.toml:8:1: sync.qwertyuiop: unknown key; [sync] has: strategy, rule, phases, period, "
      "alpha, beta, "
      "curvature, outer_lr, outer_momentum, mixing, final_round");
}

TEST(Config, finds_the_table_of_a_key_that_stands_in_none) {
  try {
    parse_config("period = 3\n" + std::string(data_table), "c.toml", {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "c.toml:1:1: period: belongs in a table; did you mean sync.period?");
  }
  try {
    parse_config("sync = 3\n" + std::string(data_table), "c.toml", {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "c.toml:1:1: sync: expected a table, found integer");
  }
}

TEST(Config, refuses_a_wrong_type_for_every_key) {
  for (const ConfigField& field : config_fields()) {
    // A date is of nobody's type.
    const std::string wrong = field.key + " = 2024-01-01\n";
    try {
      parse_config(wrong, "c.toml", {});
      ADD_FAILURE() << field.key << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(
          error.what(),
          AllOf(
              StartsWith("c.toml:1:" + std::to_string(field.key.size() + 4) + ": " + field.key),
              HasSubstr("expected "),
              HasSubstr("found date")));
    }
  }
}

struct BadValue {
  std::string text;
  std::string message;
};

class ConfigValues : public testing::TestWithParam<BadValue> {};

TEST_P(ConfigValues, out_of_range_or_of_the_wrong_type_are_refused_with_their_place) {
  EXPECT_EQ(mistake(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Config,
    ConfigValues,
    testing::Values(
        BadValue{
            .text = "[sync]\nperiod = 0\n",
            .message = "c.toml:8:10: sync.period: must be at least 1, is 0"},
        BadValue{
            .text = "[sync]\nperiod = -3\n",
            .message = "c.toml:8:10: sync.period: must be at least 1, is -3"},
        BadValue{
            .text = "[sync]\nperiod = 3.0\n",
            .message = "c.toml:8:10: sync.period: expected an integer, found number"},
        BadValue{
            .text = "[sync]\nperiod = \"3\"\n",
            .message = "c.toml:8:10: sync.period: expected an integer or \"auto\", found \"3\""},
        BadValue{
            .text = "[sync]\nstrategy = \"esgd\"\n",
            .message = "c.toml:8:12: sync.strategy: \"esgd\" is not known; known: interleaved, "
                       "easgd, local_sgd, diloco, bsp; did you mean \"easgd\"?"},
        BadValue{
            .text = "[sync]\nalpha = \"automatic\"\n",
            .message = "c.toml:8:9: sync.alpha: expected a number or \"auto\", found "
                       "\"automatic\""},
        BadValue{
            .text = "[sync]\nalpha = nan\n",
            .message = "c.toml:8:9: sync.alpha: must be a finite number, is nan"},
        BadValue{
            .text = "[sync]\nalpha = -0.5\n",
            .message = "c.toml:8:9: sync.alpha: must be at least 0, is -0.5"},
        BadValue{
            .text = "[sync]\nbeta = 2.0\n",
            .message = "c.toml:8:8: sync.beta: must be below 2, is 2"},
        BadValue{
            .text = "[sync]\nphases = \"resdue\"\n",
            .message = "c.toml:8:10: sync.phases: \"resdue\" is not known; known: residue, "
                       "together, contiguous, level, auto; did you mean \"residue\"?"},
        BadValue{
            .text = "[sync]\nouter_lr = 0\n",
            .message = "c.toml:8:12: sync.outer_lr: must be above 0, is 0"},
        BadValue{
            .text = "[sync]\nouter_momentum = 1\n",
            .message = "c.toml:8:18: sync.outer_momentum: must be below 1, is 1"},
        BadValue{
            .text = "[sync]\nmixing = 0\n",
            .message = "c.toml:8:10: sync.mixing: must be above 0, is 0"},
        BadValue{
            .text = "[sync]\nmixing = 1.5\n",
            .message = "c.toml:8:10: sync.mixing: must be at most 1, is 1.5"},
        BadValue{
            .text = "[sync]\nfinal_round = 1\n",
            .message = "c.toml:8:15: sync.final_round: expected true or false, found integer"},
        BadValue{
            .text = "[optimizer]\nlr = 0\n",
            .message = "c.toml:8:6: optimizer.lr: must be above 0, is 0"},
        BadValue{
            .text = "[optimizer]\nlr = inf\n",
            .message = "c.toml:8:6: optimizer.lr: must be a finite number, is inf"},
        BadValue{
            .text = "[optimizer]\nmomentum = 1.0\n",
            .message = "c.toml:8:12: optimizer.momentum: must be below 1, is 1"},
        BadValue{
            .text = "[optimizer]\nschedule = \"cosin\"\n",
            .message = "c.toml:8:12: optimizer.schedule: \"cosin\" is not known; known: constant, "
                       "step, cosine; did you mean \"cosine\"?"},
        BadValue{
            .text = "[cluster]\nworkers = 0\n",
            .message = "c.toml:8:11: cluster.workers: must be at least 1, is 0"},
        BadValue{
            .text = "[cluster]\nworkers = 4097\n",
            .message = "c.toml:8:11: cluster.workers: must be at most 4096, is 4097"},
        BadValue{
            .text = "[cluster]\nworkers = 4294967297\n",
            .message = "c.toml:8:11: cluster.workers: must be at most 4096, is 4294967297"},
        BadValue{
            .text = "[job]\nseed = -1\n",
            .message = "c.toml:8:8: job.seed: must be at least 0, is -1"},
        BadValue{
            .text = "[model]\nhidden = [64, \"a\"]\n",
            .message = "c.toml:8:10: model.hidden: expected a list of integers, found list with "
                       "string"},
        BadValue{
            .text = "[model]\nhidden = []\n",
            .message = "c.toml:8:10: model.hidden: must have 1 to 64 elements, has 0"},
        BadValue{
            .text = "[model]\nhidden = [64, 0]\n",
            .message = "c.toml:8:10: model.hidden: each must lie from 1 to 65536, one is 0"},
        BadValue{
            .text = "[wire]\nchunk_bytes = 4100\n",
            .message = "c.toml:8:15: wire.chunk_bytes: must be a multiple of 64, is 4100"},
        BadValue{
            .text = "[wire]\nchunk_bytes = 2048\n",
            .message = "c.toml:8:15: wire.chunk_bytes: must be at least 4096, is 2048"},
        BadValue{
            .text = "[wire]\nchunk_bytes = 33554432\n",
            .message = "c.toml:8:15: wire.chunk_bytes: must be at most 16777216, is 33554432"},
        BadValue{
            .text = "[slots]\nclock = \"common\"\n",
            .message = "c.toml:8:9: slots.clock: \"common\" is not known; known: local, shared"},
        BadValue{
            .text = "[timeouts]\njoin_s = 0\n",
            .message = "c.toml:8:10: timeouts.join_s: must be above 0, is 0"},
        BadValue{
            .text = "[timeouts]\njoin_s = 1e-10\n",
            .message = "c.toml:8:10: timeouts.join_s: must be at least a nanosecond, is 1e-10"}));

TEST(Config, refuses_job_names_that_are_no_directory) {
  for (const std::string name : {"", ".", "..", "a/b", "../x", "-rf", "a b", "ä", "\\u0000"}) {
    EXPECT_THAT(
        mistake("[job]\nname = \"" + name + "\"\n"),
        AllOf(StartsWith("c.toml:8:8: job.name: "), HasSubstr("usable as a directory")))
        << name;
  }
  EXPECT_THAT(mistake("[job]\nname = \"" + std::string(65, 'a') + "\"\n"), Not("accepted"));
  EXPECT_EQ(parse("[job]\nname = \"run_3.b-2\"\n").job.name, "run_3.b-2");
}

TEST(Config, refuses_a_model_that_there_is_not) {
  const std::string message = mistake("[model]\nname = \"lenet\"\n");
  EXPECT_THAT(message, StartsWith("c.toml:8:8: model.name: \"lenet\" is not known; known: "));
  for (const std::string& name : model_names()) {
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_EQ(parse("[model]\nname = \"" + name + "\"\n").model.name, name);
  }
}

}  // namespace
}  // namespace stagger
