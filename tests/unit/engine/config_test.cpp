#include "engine/config.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/config_fixture.hpp"

namespace stagger {
namespace {

using test::mistake;
using test::parse;
using test::with_data;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Config, needs_the_paths_of_the_data_alone) {
  const Config config = parse("");
  EXPECT_EQ(config.data.train_images, "a.gz");
  EXPECT_EQ(config.data.test_labels, "d.gz");
  EXPECT_EQ(config.sync, SyncConfig{});
  EXPECT_EQ(config.cluster, ClusterConfig{});
  EXPECT_EQ(config.timeouts, TimeoutsConfig{});
}

TEST(Config, names_the_paths_that_are_missing) {
  try {
    parse_config("[data]\ntrain_images = \"a\"\ntest_labels = \"d\"\n", "c.toml", {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "c.toml: data.train_labels, data.test_images: missing; give the path of an IDX file");
  }
}

std::string replay_mistake(const std::string& text) {
  try {
    parse_config("[backend]\nname = \"replay\"\n" + text, "c.toml", {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Config, of_a_replay_needs_a_profile_and_iterations_and_no_data) {
  EXPECT_THAT(
      replay_mistake(""),
      AllOf(
          StartsWith("c.toml:2:8: backend.profile: missing"),
          HasSubstr("bert_base, gpt2_small, resnet50, vgg16")));
  EXPECT_THAT(
      replay_mistake("profile = \"vgg16\"\n"), StartsWith("c.toml:2:8: job.iterations: missing"));
  EXPECT_EQ(replay_mistake("profile = \"vgg16\"\n[job]\niterations = 1\n"), "accepted");
  EXPECT_THAT(
      replay_mistake("time_scale = 0\n"),
      StartsWith("c.toml:3:14: backend.time_scale: must be above 0"));
  EXPECT_THAT(mistake("[backend]\nname = \"gpu\"\n"), HasSubstr("known: cpu, replay"));
}

TEST(Config, names_a_path_of_data_that_is_empty) {
  EXPECT_THAT(
      mistake("", {{.key = "data.test_labels", .value = "\"\""}}),
      HasSubstr("data.test_labels: missing; give the path of an IDX file"));
}

TEST(Config, reads_every_table) {
  const Config config = parse(R"(
[job]
name = "j"
seed = 7
epochs = 3
[model]
name = "mlp"
hidden = [64, 32]
[optimizer]
lr = 0.125
momentum = 0.5
schedule = "cosine"
[sync]
strategy = "easgd"
rule = "fresh_center"
period = 4
alpha = 0.25
beta = 1
final_round = false
[groups]
planner = "bytes"
bytes_max = 4096
[slots]
admission = "none"
[cluster]
workers = 2
ps = "ps-0.cluster:7000"
listen = "[::]:7000"
[http]
enabled = false
[wire]
chunk_bytes = 65536
[timeouts]
join_s = 0.5
heartbeat_s = 2
)");
  EXPECT_EQ(config.job.name, "j");
  EXPECT_EQ(config.job.seed, 7U);
  EXPECT_EQ(config.job.epochs, 3U);
  EXPECT_EQ(config.model.name, "mlp");
  EXPECT_EQ(config.model.hidden, (std::vector<std::size_t>{64, 32}));
  EXPECT_EQ(config.optimizer.lr, 0.125);
  EXPECT_EQ(config.optimizer.schedule, LearningRateKind::cosine);
  EXPECT_EQ(config.sync.strategy, Strategy::easgd);
  EXPECT_EQ(config.sync.rule, UpdateRule::fresh_center);
  EXPECT_EQ(config.sync.period, 4U);
  EXPECT_EQ(config.sync.alpha, 0.25);
  EXPECT_EQ(config.sync.beta, 1.0);
  EXPECT_FALSE(config.sync.final_round);
  EXPECT_EQ(config.groups.planner, GroupPlanner::bytes);
  EXPECT_EQ(config.groups.bytes_max, 4096U);
  EXPECT_EQ(config.slots.admission, Admission::none);
  EXPECT_EQ(config.cluster.ps, (Endpoint{.host = "ps-0.cluster", .port = 7000}));
  EXPECT_EQ(config.cluster.listen, (Endpoint{.host = "::", .port = 7000}));
  EXPECT_FALSE(config.http.enabled);
  EXPECT_EQ(config.wire.chunk_bytes, 65536U);
  EXPECT_EQ(config.timeouts.join, 500ms);
  EXPECT_EQ(config.timeouts.heartbeat, 2s);
}

TEST(Config, takes_the_models_classes_from_the_data) {
  EXPECT_EQ(parse_config(with_data("classes = 26\n"), "c.toml", {}).model.classes, 26U);
}

TEST(Config, passes_on_what_is_wrong_with_an_endpoint) {
  EXPECT_THAT(
      mistake("[cluster]\nps = \"localhost\"\n"),
      AllOf(StartsWith("c.toml:8:6: cluster.ps: "), HasSubstr("port")));
  EXPECT_THAT(mistake("[cluster]\nps = \"\"\n"), StartsWith("c.toml:8:6: cluster.ps: "));
  EXPECT_EQ(parse("[cluster]\nlisten = \"\"\n").cluster.listen, Endpoint{});
}

TEST(Config, prints_the_inequality_that_timeouts_must_keep) {
  EXPECT_THAT(
      mistake("[timeouts]\nheartbeat_s = 2\nworker_s = 4\nwarning_s = 1\n"),
      AllOf(
          StartsWith("c.toml:9:12: timeouts.worker_s: "),
          HasSubstr("above 2*timeouts.heartbeat_s"),
          HasSubstr("4 > 2*2 does not hold")));
  EXPECT_THAT(
      mistake("[timeouts]\nheartbeat_s = 3\n"),  // worker_s is the default: blame what was written
      StartsWith("c.toml:8:15: timeouts.worker_s: "));
  EXPECT_THAT(
      mistake("[timeouts]\nwarning_s = 5\n"),
      AllOf(StartsWith("c.toml:8:13: timeouts.warning_s: "), HasSubstr("5 < 5 does not hold")));
  EXPECT_THAT(
      mistake("[wire]\nearly_bytes_max = 8192\n"),
      AllOf(StartsWith("c.toml:8:19: wire.early_bytes_max: "), HasSubstr("8192 >= ")));
}

TEST(Config, leaves_the_period_and_the_link_to_the_run) {
  EXPECT_EQ(mistake("[sync]\nperiod = \"auto\"\n"), "accepted");
  const Config config = parse("[sync]\nperiod = \"auto\"\n[link]\nrate_bits_per_second = 1e9\n");
  EXPECT_FALSE(config.sync.period);
  EXPECT_EQ(policy_request(config).period, PolicyRequest().period);
  EXPECT_THAT(result_settings(config), HasSubstr("sync.period = \"auto\"\n"));
  // It has no other period anyway.
  EXPECT_EQ(mistake("[sync]\nperiod = \"auto\"\nstrategy = \"bsp\"\n"), "accepted");
}

TEST(Config, holds_alpha_beta_and_period_to_the_theory) {
  EXPECT_THAT(
      mistake("[sync]\nperiod = 1\nalpha = 0.6\n"),
      AllOf(
          StartsWith("c.toml:9:9: sync.alpha = 0.6, sync.beta = 0.9"),
          HasSubstr("spectral radius 1.06394")));
  EXPECT_THAT(
      mistake("[sync]\nstrategy = \"local_sgd\"\nbeta = 0.5\n"),
      AllOf(StartsWith("c.toml:9:8: sync.beta = 0.5: "), HasSubstr("local_sgd")));
  EXPECT_EQ(mistake("[sync]\nperiod = 1\n[cluster]\nworkers = 1\n"), "accepted");
}

TEST(Config, names_the_place_of_a_syntax_error) {
  EXPECT_THAT(mistake("[sync]\nperiod = \n"), StartsWith("c.toml:8:"));
  EXPECT_THAT(mistake("[sync]\nperiod = 3\nperiod = 4\n"), StartsWith("c.toml:9:"));
  EXPECT_THAT(mistake("[sync\n"), StartsWith("c.toml:7:"));
}

TEST(ConfigOverride, takes_toml_or_a_bare_word) {
  const Config config = parse(
      "[sync]\nperiod = 3\n",
      {{.key = "sync.period", .value = "5"},
       {.key = "sync.strategy", .value = "easgd"},
       {.key = "sync.alpha", .value = "auto"},
       {.key = "optimizer.lr", .value = "1e-3"},
       {.key = "http.enabled", .value = "false"},
       {.key = "model.hidden", .value = "[8, 9]"},
       {.key = "cluster.ps", .value = "10.0.0.1:7000"},
       {.key = "job.name", .value = "2024"},
       {.key = "job.directory", .value = "\"my runs\""}});
  EXPECT_EQ(config.sync.period, 5U);
  EXPECT_EQ(config.sync.strategy, Strategy::easgd);
  EXPECT_EQ(config.sync.alpha, std::nullopt);
  EXPECT_EQ(config.optimizer.lr, 1e-3);
  EXPECT_FALSE(config.http.enabled);
  EXPECT_EQ(config.model.hidden, (std::vector<std::size_t>{8, 9}));
  EXPECT_EQ(config.cluster.ps, (Endpoint{.host = "10.0.0.1", .port = 7000}));
  EXPECT_EQ(config.job.name, "2024");
  EXPECT_EQ(config.job.directory, "my runs");
}

TEST(ConfigOverride, gives_what_the_file_lacks) {
  const Config config = parse_config(
      "",
      "c.toml",
      {{.key = "data.train_images", .value = "a"},
       {.key = "data.train_labels", .value = "b"},
       {.key = "data.test_images", .value = "c"},
       {.key = "data.test_labels", .value = "d"}});
  EXPECT_EQ(config.data.test_images, "c");
}

TEST(ConfigOverride, names_itself_when_it_is_wrong) {
  EXPECT_EQ(
      mistake("", {{.key = "sync.period", .value = "0"}}),
      "--set sync.period=0: sync.period: must be at least 1, is 0");
  EXPECT_EQ(
      mistake("", {{.key = "sync.perid", .value = "3"}}),
      "--set sync.perid=3: sync.perid: unknown key; did you mean sync.period?");
  EXPECT_EQ(
      mistake("", {{.key = "snyc.period", .value = "3"}}),
      "--set snyc.period=3: snyc: unknown table; did you mean sync?");
  EXPECT_EQ(
      mistake("", {{.key = "period", .value = "3"}}), "--set period=3: expected table.key=value");
  EXPECT_EQ(
      mistake("", {{.key = "sync.period", .value = "three"}}),
      "--set sync.period=three: sync.period: expected an integer or \"auto\", found \"three\"");
  EXPECT_THAT(
      mistake("", {{.key = "job.name", .value = "\"a"}}), StartsWith("--set job.name=\"a: "));
  EXPECT_THAT(
      mistake("", {{.key = "sync.period", .value = "3\nx = 1"}}), HasSubstr("expected one value"));
}

TEST(ConfigOverride, is_blamed_for_a_conflict_with_the_file) {
  EXPECT_THAT(
      mistake("[sync]\nalpha = 0.6\n", {{.key = "sync.period", .value = "1"}}),
      StartsWith("c.toml:8:9: sync.alpha = 0.6"));
  EXPECT_THAT(
      mistake("[sync]\nperiod = 1\n", {{.key = "sync.alpha", .value = "0.6"}}),
      StartsWith("--set sync.alpha=0.6: sync.alpha = 0.6"));
}

TEST(Config, asks_policy_and_planner_what_the_file_says) {
  const Config config = parse(
      "[sync]\nperiod = 5\nbeta = 0.8\n[cluster]\nworkers = 3\n[groups]\nplanner = \"all\"\n"
      "[optimizer]\nlr = 0.5\nmomentum = 0.25\n");
  const PolicyRequest request = policy_request(config);
  EXPECT_EQ(request.period, 5U);
  EXPECT_EQ(request.workers, 3U);
  EXPECT_EQ(request.beta, 0.8);
  EXPECT_EQ(request.alpha, std::nullopt);
  EXPECT_EQ(request.learning_rate, 0.5);
  EXPECT_EQ(request.momentum, 0.25);
  EXPECT_EQ(grouping_options(config).planner, GroupPlanner::all);
  EXPECT_EQ(grouping_options(config).period, 5U);
}

}  // namespace
}  // namespace stagger
