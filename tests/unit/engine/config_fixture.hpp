#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/config.hpp"

/// Configs in a few lines, for tests of what is accepted and how mistakes are named.
namespace stagger::test {

/// Six lines; what a test adds begins at line 7.
inline constexpr std::string_view data_table =
    "[data]\n"
    "train_images = \"a.gz\"\n"
    "train_labels = \"b.gz\"\n"
    "test_images = \"c.gz\"\n"
    "test_labels = \"d.gz\"\n"
    "\n";

inline std::string with_data(const std::string& text) {
  return std::string(data_table) + text;
}

inline Config parse(const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
  return parse_config(with_data(text), "c.toml", overrides);
}

inline std::string mistake(
    const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

inline std::string table_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

inline std::string name_of(const std::string& key) {
  return key.substr(key.find('.') + 1);
}

}  // namespace stagger::test
