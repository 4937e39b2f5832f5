#include "engine/config.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "engine/config_conflicts.hpp"
#include "engine/config_schema.hpp"
#include "engine/config_value.hpp"

namespace stagger {
namespace {

/// "configs/quickstart.toml:12:1", or "--set sync.period=0".
std::string position(std::string_view source, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", source, region.begin.line, region.begin.column);
}

std::string_view table_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string_view name_of(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) {
    const std::string_view table = table_of(field.key);
    if (names.empty() || names.back() != table) names.emplace_back(table);
  }
  return names;
}

/// Names of a table's keys without the table; of all tables' keys when no table is given.
std::vector<std::string> key_names(std::string_view table) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) {
    if (table.empty() || table_of(field.key) == table) names.emplace_back(name_of(field.key));
  }
  return names;
}

const ConfigField* find_field(std::string_view key) {
  const auto& fields = config_fields();
  const auto field = std::ranges::find(fields, key, &ConfigField::key);
  return field == fields.end() ? nullptr : &*field;
}

/// The key whose name, in whatever table, is nearest.
std::optional<std::string> nearest_key(std::string_view name) {
  const auto nearest = nearest_name(name, key_names({}));
  if (!nearest) return std::nullopt;
  const auto& fields = config_fields();
  return std::ranges::find(
             fields, *nearest, [](const ConfigField& field) { return name_of(field.key); })
      ->key;
}

std::string unknown_key(std::string_view key) {
  const std::string_view table = table_of(key);
  const std::vector<std::string> names = key_names(table);
  if (const auto nearest = nearest_name(name_of(key), names)) {
    return fmt::format("{}: unknown key; did you mean {}.{}?", key, table, *nearest);
  }
  if (const auto elsewhere = nearest_key(name_of(key))) {
    return fmt::format("{}: unknown key; did you mean {}?", key, *elsewhere);
  }
  return fmt::format("{}: unknown key; [{}] has: {}", key, table, join_names(names));
}

std::string unknown_table(std::string_view table) {
  const std::vector<std::string> names = table_names();
  if (const auto nearest = nearest_name(table, names)) {
    return fmt::format("{}: unknown table; did you mean {}?", table, *nearest);
  }
  return fmt::format("{}: unknown table; there are: {}", table, join_names(names));
}

std::string type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "table";
    case toml::node_type::array:
      return "list";
    case toml::node_type::date:
      return "date";
    case toml::node_type::time:
      return "time";
    case toml::node_type::date_time:
      return "date and time";
    case toml::node_type::none:
    case toml::node_type::string:
    case toml::node_type::integer:
    case toml::node_type::floating_point:
    case toml::node_type::boolean:
      break;
  }
  return "something else";
}

ConfigValue to_value(const toml::node& node) {
  if (const auto* const found = node.as_boolean()) return found->get();
  if (const auto* const found = node.as_integer()) return found->get();
  if (const auto* const found = node.as_floating_point()) return found->get();
  if (const auto* const found = node.as_string()) return found->get();
  const auto* const list = node.as_array();
  if (list == nullptr) return UnusedToml{.type = type_of(node)};
  std::vector<std::int64_t> values;
  for (const toml::node& element : *list) {
    const auto* const value = element.as_integer();
    if (value == nullptr) return UnusedToml{.type = "list with " + type_name(to_value(element))};
    values.push_back(value->get());
  }
  return values;
}

/// A value stands where only tables may: `job = 3`, or a key above the first table.
std::string not_a_table(const std::string& name, const toml::node& node) {
  if (const auto key = nearest_key(name)) {
    return fmt::format("belongs in a table; did you mean {}?", *key);
  }
  return fmt::format("expected a table, found {}", type_name(to_value(node)));
}

/// A config being made, and where each of its values came from.
class ConfigBuilder {
 public:
  explicit ConfigBuilder(std::string_view source) : source_(source) {}

  void add_table(const toml::table& root);
  void add_override(const ConfigOverride& override);

  /// Applies the checks that take more than one value.
  Config finish() &&;

 private:
  void add_value(const std::string& key, const ConfigValue& value, const std::string& origin);
  void require_data() const;

  /// Where the message's first key with an origin came from: the place to look at.
  std::string blame(std::string_view message) const;

  std::string source_;
  Config config_;
  std::map<std::string, std::string> origins_;
};

void ConfigBuilder::add_value(
    const std::string& key, const ConfigValue& value, const std::string& origin) {
  const ConfigField* const field = find_field(key);
  if (field == nullptr) throw ConfigError(origin + ": " + unknown_key(key));
  if (const auto problem = field->set(config_, value)) {
    throw ConfigError(fmt::format("{}: {}: {}", origin, key, *problem));
  }
  origins_[key] = origin;
}

void ConfigBuilder::add_table(const toml::table& root) {
  const std::vector<std::string> tables = table_names();
  for (const auto& [table_key, node] : root) {
    const std::string table(table_key.str());
    const std::string place = position(source_, table_key.source());
    const bool known = std::ranges::find(tables, table) != tables.end();
    const toml::table* const values = node.as_table();
    if (values == nullptr) {
      throw ConfigError(fmt::format("{}: {}: {}", place, table, not_a_table(table, node)));
    }
    if (!known) throw ConfigError(place + ": " + unknown_table(table));
    for (const auto& [key, value] : *values) {
      const std::string full_key = table + "." + std::string(key.str());
      const bool exists = find_field(full_key) != nullptr;
      add_value(
          full_key, to_value(value), position(source_, exists ? value.source() : key.source()));
    }
  }
}

void ConfigBuilder::add_override(const ConfigOverride& override) {
  const std::string origin = fmt::format("--set {}={}", override.key, override.value);
  const std::vector<std::string> tables = table_names();
  const std::string table(table_of(override.key));
  if (override.key.find('.') == std::string::npos) {
    throw ConfigError(origin + ": expected table.key=value");
  }
  if (std::ranges::find(tables, table) == tables.end()) {
    throw ConfigError(origin + ": " + unknown_table(table));
  }
  const ConfigField* const field = find_field(override.key);
  const bool quoted = override.value.find_first_of("\"'[{") == 0;
  ConfigValue value = override.value;  // a bare word is a string
  try {
    const toml::table parsed = toml::parse("value = " + override.value);
    const toml::node* const node = parsed.get("value");
    if (parsed.size() != 1 || node == nullptr) throw ConfigError(origin + ": expected one value");
    // name=2024 means the text, where a text is wanted.
    const bool text_wanted = field != nullptr && field->type == "string" && !quoted;
    if (!text_wanted) value = to_value(*node);
  } catch (const toml::parse_error& error) {
    if (quoted) throw ConfigError(fmt::format("{}: {}", origin, error.description()));
  }
  add_value(override.key, value, origin);
}

std::string ConfigBuilder::blame(std::string_view message) const {
  std::size_t first = std::string_view::npos;
  std::string place = source_;
  for (const auto& [key, origin] : origins_) {
    const std::size_t at = message.find(key);
    if (at < first) {
      first = at;
      place = origin;
    }
  }
  return fmt::format("{}: {}", place, message);
}

void ConfigBuilder::require_data() const {
  if (config_.backend.kind == BackendKind::replay) return;
  std::vector<std::string> missing;
  for (const ConfigField& field : config_fields()) {
    const bool path = field.key.ends_with("_images") || field.key.ends_with("_labels");
    if (path && field.get(config_) == toml_text(std::string_view{})) missing.push_back(field.key);
  }
  if (missing.empty()) return;
  throw ConfigError(
      fmt::format("{}: {}: missing; give the path of an IDX file", source_, join_names(missing)));
}

Config ConfigBuilder::finish() && {
  require_data();
  if (const auto conflict = find_config_conflict(config_)) throw ConfigError(blame(*conflict));
  const auto verdict = resolve(policy_request(config_));
  if (verdict.has_error()) throw ConfigError(blame(verdict.error().detail));
  config_.model.classes = config_.data.classes;
  return std::move(config_);
}

Config build(
    const toml::table& table,
    std::string_view source,
    const std::vector<ConfigOverride>& overrides) {
  ConfigBuilder builder(source);
  builder.add_table(table);
  for (const ConfigOverride& override : overrides)
    builder.add_override(override);
  return std::move(builder).finish();
}

ConfigError syntax_error(std::string_view source, const toml::parse_error& error) {
  const bool placed = error.source().begin.line > 0;
  return ConfigError(fmt::format(
      "{}: {}",
      placed ? position(source, error.source()) : std::string(source),
      error.description()));
}

}  // namespace

Config parse_config(
    std::string_view text, std::string_view source, const std::vector<ConfigOverride>& overrides) {
  try {
    return build(toml::parse(text, source), source, overrides);
  } catch (const toml::parse_error& error) {
    throw syntax_error(source, error);
  }
}

Config load_config(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  try {
    return build(toml::parse_file(path), path, overrides);
  } catch (const toml::parse_error& error) {
    throw syntax_error(path, error);
  }
}

namespace {

/// Until one is chosen for "auto", the default stands in: what is refused with it is refused.
std::uint32_t period_to_check(const Config& config) {
  return config.sync.period.value_or(PolicyRequest{}.period);
}

}  // namespace

PolicyRequest policy_request(const Config& config) {
  return {
      .strategy = config.sync.strategy,
      .rule = config.sync.rule,
      .period = period_to_check(config),
      .workers = config.cluster.workers,
      .alpha = config.sync.alpha,
      .beta = config.sync.beta,
      .learning_rate = config.optimizer.lr,
      .momentum = config.optimizer.momentum,
      .curvature = config.sync.curvature,
      .phase = config.sync.phases,
      .outer_lr = config.sync.outer_lr,
      .outer_momentum = config.sync.outer_momentum,
      .mixing = config.sync.mixing};
}

std::optional<LinkCost> link_cost(const Config& config) {
  if (!config.link.rate_bits_per_second) return std::nullopt;
  const auto cost =
      make_link_cost(*config.link.rate_bits_per_second, from_microseconds(config.link.start_us));
  if (cost.has_error()) throw ConfigError(cost.error().detail);
  return *cost;
}

GroupingOptions grouping_options(const Config& config) {
  std::optional<LinkCost> link = link_cost(config);
  if (link) link = shared_by(*link, config.cluster.workers);
  return {
      .planner = config.groups.planner,
      .count = config.groups.count,
      .bytes_max = config.groups.bytes_max,
      .first_bytes_max = config.groups.first_bytes_max,
      .period = period_to_check(config),
      .phases = phase_of(policy_request(config)),
      .link = link};
}

SlotOptions slot_options(const Config& config) {
  SlotOptions options{.rule = config.slots.rule, .clock = config.slots.clock, .link = std::nullopt};
  if (const auto link = link_cost(config)) {
    options.link = MeasuredLink{.cost = *link, .guard = config.slots.guard};
  }
  return options;
}

std::string to_toml(const Config& config) {
  std::string text;
  std::string_view table;
  for (const ConfigField& field : config_fields()) {
    if (table != table_of(field.key)) {
      if (!table.empty()) text += '\n';
      table = table_of(field.key);
      text += fmt::format("[{}]\n", table);
    }
    text += fmt::format("{} = {}\n", name_of(field.key), field.get(config));
  }
  return text;
}

std::string result_settings(const Config& config) {
  std::string text;
  for (const ConfigField& field : config_fields()) {
    if (field.changes_results) text += fmt::format("{} = {}\n", field.key, field.get(config));
  }
  return text;
}

}  // namespace stagger
