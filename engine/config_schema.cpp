#include "engine/config_schema.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "engine/config_readers.hpp"

namespace stagger {
namespace {

constexpr std::uint64_t any = std::numeric_limits<std::int64_t>::max();  // TOML ends here
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

template <class Value>
Value narrow(std::uint64_t value) {
  if constexpr (std::is_same_v<Value, std::uint64_t>) {
    return value;
  } else {
    return static_cast<Value>(value);
  }
}

/// Where a key's value lives in a Config.
template <class Section, class Value>
struct Place {
  std::string_view key;
  Section Config::* section;
  Value Section::* member;
};

template <class Section, class Value>
Place<Section, Value> at(std::string_view key, Section Config::* section, Value Section::* member) {
  return {.key = key, .section = section, .member = member};
}

/// A field whose value `read` takes from TOML: Problem read(const ConfigValue&, Value&). The Config
/// changes only when that went well.
template <class Section, class Value, class Read>
ConfigField make_field(Place<Section, Value> place, std::string type, Read read) {
  return {
      .key = std::string(place.key),
      .type = std::move(type),
      .changes_results = false,
      .set = [place, read](Config& config, const ConfigValue& value) -> Problem {
        Value parsed{};
        if (Problem problem = read(value, parsed)) return problem;
        (config.*place.section).*place.member = std::move(parsed);
        return std::nullopt;
      },
      .get =
          [place](const Config& config) {
            return toml_text((config.*place.section).*place.member);
          }};
}

template <class Section, class Value>
ConfigField integer(Place<Section, Value> place, std::uint64_t low, std::uint64_t high = any) {
  return make_field(place, "integer", [=](const ConfigValue& value, Value& parsed) -> Problem {
    std::uint64_t found = 0;
    if (Problem problem = read_integer(value, low, high, found)) return problem;
    parsed = narrow<Value>(found);
    return std::nullopt;
  });
}

template <class Section>
ConfigField integer_or_auto(
    Place<Section, std::optional<std::uint32_t>> place, std::uint32_t low, std::uint32_t high) {
  return make_field(
      place,
      "integer or \"auto\"",
      [low, high](const ConfigValue& value, std::optional<std::uint32_t>& parsed) {
        return read_integer_or_auto(value, low, high, parsed);
      });
}

template <class Section>
ConfigField number(Place<Section, double> place, Range range) {
  return make_field(place, "number", [range](const ConfigValue& value, double& parsed) {
    return read_number(value, range, parsed);
  });
}

template <class Section>
ConfigField number_or_auto(Place<Section, std::optional<double>> place, Range range) {
  return make_field(
      place,
      "number or \"auto\"",
      [range](const ConfigValue& value, std::optional<double>& parsed) {
        return read_number_or_auto(value, range, parsed);
      });
}

template <class Section>
ConfigField seconds(Place<Section, Duration> place) {
  return make_field(place, "number", read_seconds);
}

template <class Section>
ConfigField flag(Place<Section, bool> place) {
  return make_field(place, "boolean", read_flag);
}

using TextCheck = Problem (*)(const std::string&);

template <class Section>
ConfigField text(Place<Section, std::string> place, TextCheck check) {
  return make_field(
      place, "string", [check](const ConfigValue& value, std::string& parsed) -> Problem {
        if (Problem problem = read_text(value, parsed)) return problem;
        return check(parsed);
      });
}

template <class Section>
ConfigField one_of(Place<Section, std::string> place, std::vector<std::string> names) {
  return make_field(
      place,
      "string",
      [names = std::move(names)](const ConfigValue& value, std::string& parsed) -> Problem {
        std::size_t index = 0;
        if (Problem problem = read_choice(value, names, index)) return problem;
        parsed = names[index];
        return std::nullopt;
      });
}

/// A place that may be unset has the name "auto" too.
template <class Section, class Value, class Enum>
ConfigField choice(Place<Section, Value> place, std::initializer_list<Enum> choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const Enum each : choices)
    names.emplace_back(to_string(each));
  if constexpr (!std::is_enum_v<Value>) names.emplace_back("auto");
  return make_field(
      place,
      "string",
      [choices = std::vector<Enum>(choices), names = std::move(names)](
          const ConfigValue& value, Value& parsed) -> Problem {
        std::size_t index = 0;
        if (Problem problem = read_choice(value, names, index)) return problem;
        if (index < choices.size()) parsed = choices[index];
        return std::nullopt;
      });
}

template <class Section>
ConfigField endpoint(Place<Section, Endpoint> place, bool may_be_empty) {
  return make_field(place, "string", [may_be_empty](const ConfigValue& value, Endpoint& parsed) {
    return read_endpoint(value, may_be_empty, parsed);
  });
}

template <class Section>
ConfigField sizes(Place<Section, std::vector<std::size_t>> place) {
  return make_field(place, "list of integers", read_sizes);
}

/// A multiple of 64, so that a chunk's memory is aligned as its group's is.
ConfigField chunk_bytes() {
  constexpr std::uint64_t chunk_max = std::uint64_t{16} << 20;
  ConfigField field =
      integer(at("wire.chunk_bytes", &Config::wire, &WireConfig::chunk_bytes), 4096, chunk_max);
  field.set = [ranged = field.set](Config& config, const ConfigValue& value) -> Problem {
    const auto* const found = std::get_if<std::int64_t>(&value);
    if (found != nullptr && *found % 64 != 0) {
      return fmt::format("must be a multiple of 64, is {}", *found);
    }
    return ranged(config, value);
  };
  return field;
}

using Fields = std::vector<ConfigField>;

Fields job_fields() {
  const auto section = &Config::job;
  return {
      text(at("job.name", section, &JobConfig::name), check_job_name),
      integer(at("job.seed", section, &JobConfig::seed), 0),
      text(at("job.directory", section, &JobConfig::directory), check_path),
      integer(at("job.epochs", section, &JobConfig::epochs), 1, 1'000'000),
      integer(at("job.iterations", section, &JobConfig::iterations), 0),
      one_of(at("model.name", &Config::model, &ModelSpec::name), model_names()),
      sizes(at("model.hidden", &Config::model, &ModelSpec::hidden)),
  };
}

Fields data_fields() {
  const auto section = &Config::data;
  return {
      text(at("data.train_images", section, &DataConfig::train_images), check_optional_path),
      text(at("data.train_labels", section, &DataConfig::train_labels), check_optional_path),
      text(at("data.test_images", section, &DataConfig::test_images), check_optional_path),
      text(at("data.test_labels", section, &DataConfig::test_labels), check_optional_path),
      integer(at("data.classes", section, &DataConfig::classes), 2, 256),
      integer(at("data.batch", section, &DataConfig::batch), 1, 1'000'000),
      integer(at("data.train_samples", section, &DataConfig::train_samples), 0),
      integer(at("data.test_samples", section, &DataConfig::test_samples), 0),
      flag(at("data.keep_last", section, &DataConfig::keep_last)),
      number(at("data.mean", section, &DataConfig::mean), {.low = -infinite}),
      number(at("data.deviation", section, &DataConfig::deviation), {.above_low = true}),
  };
}

Fields backend_fields() {
  constexpr double scale_max = 1000.0;
  const Range scale{.high = scale_max, .above_low = true};
  const auto section = &Config::backend;
  return {
      choice(
          at("backend.name", section, &BackendConfig::kind),
          {BackendKind::cpu, BackendKind::replay}),
      text(at("backend.profile", section, &BackendConfig::profile), check_optional_path),
      number(at("backend.time_scale", section, &BackendConfig::time_scale), scale),
      number(at("backend.bytes_scale", section, &BackendConfig::bytes_scale), scale),
      number_or_auto(
          at("backend.backward_ratio", section, &BackendConfig::backward_ratio),
          {.high = scale_max}),
      number(at("backend.jitter", section, &BackendConfig::jitter), {.high = scale_max}),
  };
}

Fields optimizer_fields() {
  using Kind = LearningRateKind;
  const auto section = &Config::optimizer;
  return {
      number(at("optimizer.lr", section, &OptimizerConfig::lr), {.above_low = true}),
      number(
          at("optimizer.momentum", section, &OptimizerConfig::momentum),
          {.high = 1.0, .below_high = true}),
      number(at("optimizer.weight_decay", section, &OptimizerConfig::weight_decay), {}),
      choice(
          at("optimizer.schedule", section, &OptimizerConfig::schedule),
          {Kind::constant, Kind::step, Kind::cosine}),
      integer(at("optimizer.warmup_iterations", section, &OptimizerConfig::warmup_iterations), 0),
      number(at("optimizer.floor", section, &OptimizerConfig::floor), {.high = 1.0}),
      integer(at("optimizer.step_iterations", section, &OptimizerConfig::step_iterations), 1),
      number(
          at("optimizer.step_factor", section, &OptimizerConfig::step_factor),
          {.high = 1.0, .above_low = true}),
  };
}

Fields sync_fields() {
  using enum Strategy;
  const auto section = &Config::sync;
  return {
      choice(
          at("sync.strategy", section, &SyncConfig::strategy),
          {interleaved, easgd, local_sgd, diloco, bsp}),
      choice(
          at("sync.rule", section, &SyncConfig::rule),
          {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}),
      choice(
          at("sync.phases", section, &SyncConfig::phases),
          {PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level}),
      integer_or_auto(at("sync.period", section, &SyncConfig::period), 1, 1'000'000),
      number_or_auto(at("sync.alpha", section, &SyncConfig::alpha), {}),
      number_or_auto(
          at("sync.beta", section, &SyncConfig::beta),
          {.high = 2.0, .above_low = true, .below_high = true}),
      number_or_auto(at("sync.curvature", section, &SyncConfig::curvature), {.above_low = true}),
      number(at("sync.outer_lr", section, &SyncConfig::outer_lr), {.above_low = true}),
      number(
          at("sync.outer_momentum", section, &SyncConfig::outer_momentum),
          {.high = 1.0, .below_high = true}),
      number(at("sync.mixing", section, &SyncConfig::mixing), {.high = 1.0, .above_low = true}),
      flag(at("sync.final_round", section, &SyncConfig::final_round)),
  };
}

Fields group_and_slot_fields() {
  using enum GroupPlanner;
  const auto groups = &Config::groups;
  const auto slots = &Config::slots;
  return {
      choice(
          at("groups.planner", groups, &GroupsConfig::planner),
          {layerwise, all, bytes, count, mg_wfbp, optimal}),
      integer(at("groups.count", groups, &GroupsConfig::count), 0, 65536),
      integer(at("groups.bytes_max", groups, &GroupsConfig::bytes_max), 1),
      integer(at("groups.first_bytes_max", groups, &GroupsConfig::first_bytes_max), 1),
      choice(
          at("slots.admission", slots, &SlotsConfig::admission),
          {Admission::none, Admission::slots, Admission::grants, Admission::slots_grants}),
      integer(at("slots.concurrent", slots, &SlotsConfig::concurrent), 1, 4096),
      seconds(at("slots.turn_limit_s", slots, &SlotsConfig::turn_limit)),
      choice(at("slots.clock", slots, &SlotsConfig::clock), {SlotClock::local, SlotClock::shared}),
      choice(at("slots.rule", slots, &SlotsConfig::rule), {SlotRule::paper, SlotRule::measured}),
      number(at("slots.guard", slots, &SlotsConfig::guard), {.high = 10.0}),
      integer(at("slots.profile_iterations", slots, &SlotsConfig::profile_iterations), 1, 10'000),
  };
}

Fields link_fields() {
  const auto section = &Config::link;
  return {
      number_or_auto(
          at("link.rate_bits_per_second", section, &LinkConfig::rate_bits_per_second),
          {.low = 1.0, .high = 1e15}),
      number(at("link.start_us", section, &LinkConfig::start_us), {.high = 1e9}),
  };
}

Fields machine_fields() {
  const auto cluster = &Config::cluster;
  const auto http = &Config::http;
  const auto timeouts = &Config::timeouts;
  return {
      integer(at("cluster.workers", cluster, &ClusterConfig::workers), 1, 4096),
      endpoint(at("cluster.ps", cluster, &ClusterConfig::ps), false),
      endpoint(at("cluster.listen", cluster, &ClusterConfig::listen), true),
      endpoint(at("http.listen", http, &HttpConfig::listen), false),
      flag(at("http.enabled", http, &HttpConfig::enabled)),
      integer(at("http.connections_max", http, &HttpConfig::connections_max), 1, 65536),
      integer(at("http.body_bytes_max", http, &HttpConfig::body_bytes_max), 1, gibibyte),
      chunk_bytes(),
      integer(at("wire.window_bytes", &Config::wire, &WireConfig::window_bytes), 0, gibibyte),
      integer(
          at("wire.early_bytes_max", &Config::wire, &WireConfig::early_bytes_max),
          4096,
          1024 * gibibyte),
      seconds(at("timeouts.join_s", timeouts, &TimeoutsConfig::join)),
      seconds(at("timeouts.heartbeat_s", timeouts, &TimeoutsConfig::heartbeat)),
      seconds(at("timeouts.worker_s", timeouts, &TimeoutsConfig::worker)),
      seconds(at("timeouts.warning_s", timeouts, &TimeoutsConfig::warning)),
      seconds(at("timeouts.stop_s", timeouts, &TimeoutsConfig::stop)),
  };
}

/// Paths are left out: machines may keep the same files in different places. A replayed profile's
/// sizes are compared as the model's schema; its times may differ.
bool changes_results(std::string_view key) {
  constexpr std::array<std::string_view, 5> tables{
      "model.", "optimizer.", "sync.", "groups.", "link."};
  constexpr std::array<std::string_view, 15> keys{
      "job.seed",
      "job.epochs",
      "job.iterations",
      "data.classes",
      "data.batch",
      "data.keep_last",
      "data.train_samples",
      "data.test_samples",
      "data.mean",
      "data.deviation",
      "backend.name",
      "backend.bytes_scale",
      "cluster.workers",
      "slots.rule",
      "wire.chunk_bytes"};
  return std::ranges::find(keys, key) != keys.end() ||
         std::ranges::any_of(
             tables, [&](std::string_view table) { return key.starts_with(table); });
}

Fields make_fields() {
  Fields all;
  for (Fields part :
       {job_fields(),
        data_fields(),
        backend_fields(),
        optimizer_fields(),
        sync_fields(),
        group_and_slot_fields(),
        link_fields(),
        machine_fields()}) {
    std::ranges::move(part, std::back_inserter(all));
  }
  for (ConfigField& field : all)
    field.changes_results = changes_results(field.key);
  return all;
}

}  // namespace

const std::vector<ConfigField>& config_fields() {
  static const Fields fields = make_fields();
  return fields;
}

}  // namespace stagger
