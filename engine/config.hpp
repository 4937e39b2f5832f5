#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/learning_rate.hpp"
#include "engine/model.hpp"
#include "net/endpoint.hpp"
#include "net/time.hpp"
#include "ps/grouping.hpp"
#include "ps/planner.hpp"
#include "ps/policy.hpp"
#include "ps/timeouts.hpp"

/// A run's configuration: plain values that mirror the TOML tables one to one. Every limit of the
/// program lives here.
namespace stagger {

struct JobConfig {           // [job]
  std::string name = "job";  ///< the job id on the wire, and the directory below `directory`
  std::uint64_t seed = 1;
  std::string directory = "runs";  ///< a run writes <directory>/<name>/
  std::uint64_t epochs = 1;
  std::uint64_t iterations = 0;  ///< 0: from epochs; else overrides them
  bool operator==(const JobConfig&) const = default;
};

struct DataConfig {                                                  // [data]
  std::string train_images, train_labels, test_images, test_labels;  ///< IDX files, .gz or plain
  std::uint64_t classes = 10;
  std::uint64_t batch = 32;         ///< per worker
  std::uint64_t train_samples = 0;  ///< 0: all; else the first so many
  std::uint64_t test_samples = 0;
  bool keep_last = false;
  double mean = 0.2860;  ///< of pixel/255
  double deviation = 0.3530;
  bool operator==(const DataConfig&) const = default;
};

enum class BackendKind { cpu, replay };

constexpr std::string_view to_string(BackendKind kind) {
  return kind == BackendKind::cpu ? "cpu" : "replay";
}

struct BackendConfig {                   // [backend]
  BackendKind kind = BackendKind::cpu;   ///< `name`
  std::string profile;                   ///< replay: a shipped profile's name, or a CSV's path
  double time_scale = 1.0;               ///< replay: its times are multiplied by this …
  double bytes_scale = 1.0;              ///< … and its sizes by this
  std::optional<double> backward_ratio;  ///< backward over forward; none: as the profile says
  double jitter = 0.0;                   ///< computing takes up to this share longer, at random
  bool operator==(const BackendConfig&) const = default;
};

struct OptimizerConfig {  // [optimizer]
  double lr = 0.05;
  double momentum = 0.0;
  double weight_decay = 0.0;
  LearningRateKind schedule = LearningRateKind::constant;
  std::uint64_t warmup_iterations = 0;
  double floor = 0.0;
  std::uint64_t step_iterations = 1000;
  double step_factor = 0.1;
  bool operator==(const OptimizerConfig&) const = default;
};

struct SyncConfig {  // [sync]
  Strategy strategy = Strategy::interleaved;
  UpdateRule rule = UpdateRule::old_center;
  std::optional<PhaseRule> phases;
  std::optional<std::uint32_t> period = 3;  ///< none: "auto", chosen at the start
  std::optional<double> alpha;
  std::optional<double> beta;
  std::optional<double> curvature;
  double outer_lr = 0.7;
  double outer_momentum = 0.9;
  double mixing = 1.0;
  bool final_round = true;
  bool operator==(const SyncConfig&) const = default;
};

struct GroupsConfig {  // [groups]
  GroupPlanner planner = GroupPlanner::count;
  std::uint32_t count = 0;  ///< 0: 2*period
  std::uint64_t bytes_max = std::uint64_t{25} << 20;
  std::uint64_t first_bytes_max = std::uint64_t{1} << 20;
  bool operator==(const GroupsConfig&) const = default;
};

struct SlotsConfig {  // [slots]
  Admission admission = Admission::grants;
  std::uint32_t concurrent = 1;        ///< turns at a time, with grants
  Duration turn_limit{500ms};          ///< a holder of a turn that stalls this long loses it
  SlotClock clock = SlotClock::local;  ///< what slots count from
  SlotRule rule = SlotRule::paper;
  double guard = 0.05;                   ///< rule measured: share of a push's time
  std::uint64_t profile_iterations = 5;  ///< measured before iteration 1, on scratch parameters
  bool operator==(const SlotsConfig&) const = default;
};

struct LinkConfig {                            // [link]: the PS's, one direction
  std::optional<double> rate_bits_per_second;  ///< "auto": measured at the start, if needed
  double start_us = 50.0;  ///< before a push's first byte; measured with the rate
  bool operator==(const LinkConfig&) const = default;
};

struct ClusterConfig {  // [cluster]
  std::uint32_t workers = 4;
  Endpoint ps{.host = "127.0.0.1", .port = 0};  ///< `ps = "host:port"`: where workers dial
  Endpoint listen{};  ///< `listen`: where the PS listens; default: the same
  bool operator==(const ClusterConfig&) const = default;
};

struct HttpConfig {                                 // [http]
  Endpoint listen{.host = "127.0.0.1", .port = 0};  ///< port 0: any free port, printed
  bool enabled = true;
  std::uint64_t connections_max = 64;
  std::uint64_t body_bytes_max = 65536;
  bool operator==(const HttpConfig&) const = default;
};

struct WireConfig {  // [wire]
  std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
  std::uint64_t window_bytes =
      0;  ///< what a peer may have sent and not read; 0: as the kernel likes
  std::uint64_t early_bytes_max =
      std::uint64_t{256} << 20;  ///< what the PS keeps of chunks that came before their turn
  bool operator==(const WireConfig&) const = default;
};

using TimeoutsConfig = Timeouts;  // [timeouts], written as seconds: join_s, heartbeat_s, …

struct Config {
  JobConfig job;
  ModelSpec model;  // [model]: name, hidden (input comes from the data)
  DataConfig data;
  BackendConfig backend;
  OptimizerConfig optimizer;
  SyncConfig sync;
  GroupsConfig groups;
  SlotsConfig slots;
  LinkConfig link;
  ClusterConfig cluster;
  HttpConfig http;
  WireConfig wire;
  TimeoutsConfig timeouts;
};

/// A mistake in a config: one line for people.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `--set table.key=value`; the value is TOML, or a bare word taken as a string.
struct ConfigOverride {
  std::string key;
  std::string value;
};

/// Parses and checks. Unknown tables, keys and values, wrong types and ranges throw ConfigError:
///   "configs/quickstart.toml:12:1: sync.perid: unknown key; did you mean sync.period?"
/// Overrides are named "--set sync.period=0: …". Strategy and elastic constants are checked with
/// ps/policy resolve().
Config parse_config(
    std::string_view text, std::string_view source, const std::vector<ConfigOverride>& overrides);

/// Reads the file, then parse_config.
Config load_config(const std::string& path, const std::vector<ConfigOverride>& overrides);

/// What ps/policy and ps/planner are asked, as the config says it.
PolicyRequest policy_request(const Config& config);
GroupingOptions grouping_options(const Config& config);
SlotOptions slot_options(const Config& config);

/// What one push costs; none while link.rate_bits_per_second is "auto".
std::optional<LinkCost> link_cost(const Config& config);

/// The whole config as TOML, every key present: `config.toml` of a run. parse_config reads it back
/// to the same values.
std::string to_toml(const Config& config);

/// `table.key = value` lines of what changes results (seed, data but for its paths, model,
/// optimizer, sync, groups, link, workers, chunks): both ends of the wire must agree.
std::string result_settings(const Config& config);

}  // namespace stagger
