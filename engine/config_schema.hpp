#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/config_value.hpp"

/// Every key of a config, once: what parse_config, to_toml, result_settings and the test of
/// configs/README.md go by.
namespace stagger {

struct ConfigField {
  std::string key;   ///< "sync.period"
  std::string type;  ///< as in configs/README.md: "integer", "number", "number or \"auto\"", …

  /// Whether runs that differ in it may differ in parameters, or cannot run together.
  bool changes_results = false;

  /// Stores the value, or says what is wrong with it and changes nothing.
  std::function<std::optional<std::string>(Config&, const ConfigValue&)> set;

  /// The value as TOML.
  std::function<std::string(const Config&)> get;
};

/// In the order of the tables and keys in engine/config.hpp.
const std::vector<ConfigField>& config_fields();

}  // namespace stagger
