#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config.hpp"
#include "engine/config_schema.hpp"

/// What a config looks like outside the program: to_toml, result_settings, the files and the
/// document in configs/.
namespace stagger {
namespace {

using testing::HasSubstr;
using testing::Not;

std::filesystem::path configs() {
  return std::filesystem::path(STAGGER_SOURCE_DIR) / "configs";
}

/// A value other than the default for every key, such that all of them go together.
std::map<std::string, std::string> other_values() {
  return {
      {"job.name", R"("other")"},
      {"job.seed", "9223372036854775807"},
      {"job.directory", R"("a \"quoted\"\t\\ dir\u0001ectory é")"},
      {"job.epochs", "17"},
      {"job.iterations", "1234567"},
      {"model.name", R"("mlp")"},
      {"model.hidden", "[3, 65536]"},
      {"data.train_images", R"("other")"},
      {"data.train_labels", R"("other")"},
      {"data.test_images", R"("other")"},
      {"data.test_labels", R"("other")"},
      {"data.classes", "26"},
      {"data.batch", "33"},
      {"data.train_samples", "1000"},
      {"data.test_samples", "100"},
      {"data.keep_last", "true"},
      {"data.mean", "-0.1"},
      {"data.deviation", "1"},
      {"backend.name", R"("replay")"},
      {"backend.profile", R"("other")"},
      {"backend.time_scale", "0.5"},
      {"backend.bytes_scale", "0.25"},
      {"backend.backward_ratio", "1.5"},
      {"backend.jitter", "0.1"},
      {"optimizer.lr", "0.1"},
      {"optimizer.momentum", "0.30000000000000004"},
      {"optimizer.weight_decay", "5e-324"},
      {"optimizer.schedule", R"("step")"},
      {"optimizer.warmup_iterations", "5"},
      {"optimizer.floor", "0.01"},
      {"optimizer.step_iterations", "7"},
      {"optimizer.step_factor", "0.3333333333333333"},
      {"sync.strategy", R"("easgd")"},
      {"sync.rule", R"("post_step")"},
      {"sync.phases", R"("level")"},
      {"sync.period", "4"},
      {"sync.alpha", "0.1"},
      {"sync.beta", "0.7"},
      {"sync.curvature", "1.1"},
      {"sync.outer_lr", "0.6"},
      {"sync.outer_momentum", "0.8"},
      {"sync.mixing", "0.5"},
      {"sync.final_round", "false"},
      {"groups.planner", R"("bytes")"},
      {"groups.count", "9"},
      {"groups.bytes_max", "1"},
      {"groups.first_bytes_max", "9223372036854775807"},
      {"slots.admission", R"("none")"},
      {"slots.concurrent", "2"},
      {"slots.turn_limit_s", "0.7"},
      {"slots.clock", R"("shared")"},
      {"slots.rule", R"("measured")"},
      {"slots.guard", "0.1"},
      {"slots.profile_iterations", "6"},
      {"link.rate_bits_per_second", "25e9"},
      {"link.start_us", "7.5"},
      {"cluster.workers", "5"},
      {"cluster.ps", R"("[::1]:7000")"},
      {"cluster.listen", R"("0.0.0.0:7000")"},
      {"http.listen", R"("0.0.0.0:8080")"},
      {"http.enabled", "false"},
      {"http.connections_max", "3"},
      {"http.body_bytes_max", "100"},
      {"wire.chunk_bytes", "4096"},
      {"wire.window_bytes", "65536"},
      {"wire.early_bytes_max", "8192"},
      {"timeouts.join_s", "1e-9"},
      {"timeouts.heartbeat_s", "0.1"},
      {"timeouts.worker_s", "123456.789012345"},
      {"timeouts.warning_s", "0.3"},
      {"timeouts.stop_s", "999999.999999999"}};
}

Config config_with(const std::map<std::string, std::string>& values) {
  std::vector<ConfigOverride> overrides;
  for (const char* const key : {"train_images", "train_labels", "test_images", "test_labels"}) {
    overrides.push_back({.key = std::string("data.") + key, .value = "x"});
  }
  for (const auto& [key, value] : values)
    overrides.push_back({.key = key, .value = value});
  return parse_config("", "test", overrides);
}

void expect_equal(const Config& left, const Config& right) {
  EXPECT_EQ(left.job, right.job);
  EXPECT_EQ(left.model.name, right.model.name);
  EXPECT_EQ(left.model.input, right.model.input);
  EXPECT_EQ(left.model.classes, right.model.classes);
  EXPECT_EQ(left.model.hidden, right.model.hidden);
  EXPECT_EQ(left.data, right.data);
  EXPECT_EQ(left.backend, right.backend);
  EXPECT_EQ(left.optimizer, right.optimizer);
  EXPECT_EQ(left.sync, right.sync);
  EXPECT_EQ(left.groups, right.groups);
  EXPECT_EQ(left.slots, right.slots);
  EXPECT_EQ(left.link, right.link);
  EXPECT_EQ(left.cluster, right.cluster);
  EXPECT_EQ(left.http, right.http);
  EXPECT_EQ(left.wire, right.wire);
  EXPECT_EQ(left.timeouts, right.timeouts);
}

TEST(ConfigText, reads_back_to_the_same_values) {
  const Config defaults = config_with({});
  expect_equal(parse_config(to_toml(defaults), "again", {}), defaults);
  const Config other = config_with(other_values());
  expect_equal(parse_config(to_toml(other), "again", {}), other);
}

TEST(ConfigText, has_every_key) {
  const std::string text = to_toml(config_with({}));
  for (const ConfigField& field : config_fields()) {
    const std::string name = field.key.substr(field.key.find('.') + 1);
    EXPECT_THAT(text, HasSubstr("\n" + name + " = ")) << field.key;
  }
}

TEST(ConfigText, shows_each_value_that_differs_from_the_default) {
  const std::map<std::string, std::string> values = other_values();
  const Config defaults = config_with({});
  const Config other = config_with(values);
  std::set<std::string> same;
  for (const ConfigField& field : config_fields()) {
    if (field.get(other) == field.get(defaults)) same.insert(field.key);
  }
  EXPECT_EQ(same, std::set<std::string>());
}

TEST(ConfigText, result_settings_tell_runs_apart_that_may_differ_in_parameters) {
  const std::set<std::string> without_effect{
      "job.name",
      "job.directory",
      "data.train_images",
      "data.train_labels",
      "data.test_images",
      "data.test_labels",
      "backend.profile",
      "backend.time_scale",
      "backend.backward_ratio",
      "backend.jitter",
      "slots.admission",
      "slots.concurrent",
      "slots.turn_limit_s",
      "slots.clock",
      "slots.guard",
      "slots.profile_iterations",
      "cluster.ps",
      "cluster.listen",
      "http.listen",
      "http.enabled",
      "http.connections_max",
      "http.body_bytes_max",
      "wire.window_bytes",
      "wire.early_bytes_max",
      "timeouts.join_s",
      "timeouts.heartbeat_s",
      "timeouts.worker_s",
      "timeouts.warning_s",
      "timeouts.stop_s"};
  const Config defaults = config_with({});
  const Config other = config_with(other_values());
  for (const ConfigField& field : config_fields()) {
    const std::string changed = field.key + " = " + field.get(other) + "\n";
    if (without_effect.contains(field.key)) {
      EXPECT_THAT(result_settings(other), Not(HasSubstr(field.key + " = ")));
    } else {
      EXPECT_THAT(result_settings(other), HasSubstr(changed));
      EXPECT_THAT(result_settings(defaults), Not(HasSubstr(changed)));
    }
  }
}

TEST(ConfigText, of_the_examples_is_accepted_and_differs_in_strategy_alone) {
  const std::map<std::string, Strategy> examples{
      {"quickstart", Strategy::interleaved},
      {"easgd", Strategy::easgd},
      {"local_sgd", Strategy::local_sgd},
      {"diloco", Strategy::diloco},
      {"bsp", Strategy::bsp}};
  const Config quickstart = load_config((configs() / "quickstart.toml").string(), {});
  for (const auto& [name, strategy] : examples) {
    const Config config = load_config((configs() / (name + ".toml")).string(), {});
    EXPECT_EQ(config.job.name, name);
    EXPECT_EQ(config.sync.strategy, strategy);
    EXPECT_EQ(config.cluster, quickstart.cluster);
    EXPECT_EQ(config.data, quickstart.data);
    EXPECT_EQ(config.optimizer, quickstart.optimizer);
    EXPECT_EQ(config.model.name, quickstart.model.name);
    EXPECT_TRUE(resolve(policy_request(config)).has_value());
  }
}

TEST(ConfigText, of_the_replay_needs_no_data_and_reads_back) {
  const Config replay = load_config((configs() / "replay.toml").string(), {});
  EXPECT_EQ(replay.backend.kind, BackendKind::replay);
  EXPECT_EQ(replay.backend.profile, "resnet50");
  EXPECT_EQ(replay.data.train_images, "");
  expect_equal(parse_config(to_toml(replay), "again", {}), replay);
}

TEST(ConfigText, of_a_file_that_cannot_be_read_names_the_file) {
  for (const std::filesystem::path& path : {configs() / "absent.toml", configs()}) {
    try {
      load_config(path.string(), {});
      ADD_FAILURE() << path << " was read";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(path.string() + ": "));
    }
  }
}

struct Row {
  std::string type;
  std::string initial;
};

/// The rows of configs/README.md that begin with a key: | `key` | type | `default` | …
std::map<std::string, Row> documented_keys() {
  std::ifstream file(configs() / "README.md");
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '|');) {
      const std::size_t begin = cell.find_first_not_of(" `");
      const std::size_t end = cell.find_last_not_of(" `");
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
    }
    const bool is_key = cells.size() == 6 && cells[1].find('.') != std::string::npos;
    if (is_key) rows[cells[1]] = {.type = cells[2], .initial = cells[3]};
  }
  return rows;
}

TEST(ConfigText, is_documented_with_type_and_default_of_every_key_and_of_no_other) {
  std::map<std::string, Row> rows = documented_keys();
  const Config defaults;
  for (const ConfigField& field : config_fields()) {
    ASSERT_TRUE(rows.contains(field.key)) << field.key << " is not in configs/README.md";
    EXPECT_EQ(rows[field.key].type, field.type) << field.key;
    const std::string initial = field.get(defaults);
    const bool required = field.key.ends_with("_images") || field.key.ends_with("_labels");
    EXPECT_EQ(rows[field.key].initial, required ? "required" : initial) << field.key;
    rows.erase(field.key);
  }
  for (const auto& [key, row] : rows)
    ADD_FAILURE() << key << " is documented, but no key";
}

}  // namespace
}  // namespace stagger
