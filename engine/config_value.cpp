#include "engine/config_value.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace stagger {
namespace {

struct TypeNamer {
  std::string operator()(bool /*value*/) const { return "boolean"; }

  std::string operator()(std::int64_t /*value*/) const { return "integer"; }

  std::string operator()(double /*value*/) const { return "number"; }

  std::string operator()(const std::string& /*value*/) const { return "string"; }

  std::string operator()(const std::vector<std::int64_t>& /*value*/) const {
    return "list of integers";
  }

  std::string operator()(const UnusedToml& value) const { return value.type; }
};

/// Restricted Damerau-Levenshtein distance.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> cost(
      left.size() + 1, std::vector<std::size_t>(right.size() + 1, 0));
  for (std::size_t i = 0; i <= left.size(); ++i)
    cost[i][0] = i;
  for (std::size_t j = 0; j <= right.size(); ++j)
    cost[0][j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t differs = left[i - 1] == right[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + differs});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[left.size()][right.size()];
}

}  // namespace

std::string type_name(const ConfigValue& value) {
  return std::visit(TypeNamer{}, value);
}

std::string toml_text(bool value) {
  return value ? "true" : "false";
}

std::string toml_text(std::uint32_t value) {
  return std::to_string(value);
}

std::string toml_text(std::uint64_t value) {
  return std::to_string(value);
}

std::string toml_text(double value) {
  std::string text = fmt::format("{}", value);  // the shortest that reads back to the same bits
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string toml_text(std::string_view value) {
  std::string text = "\"";
  for (const char character : value) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      text += '\\';
      text += character;
    } else if (code < 0x20 || code == 0x7F) {
      text += fmt::format("\\u{:04X}", code);
    } else {
      text += character;
    }
  }
  return text + '"';
}

std::string toml_text(const std::string& value) {
  return toml_text(std::string_view(value));
}

std::string toml_text(const std::optional<double>& value) {
  return value ? toml_text(*value) : "\"auto\"";
}

std::string toml_text(const std::optional<std::uint32_t>& value) {
  return value ? toml_text(*value) : "\"auto\"";
}

std::string toml_text(Duration value) {
  return toml_text(to_seconds(value));
}

std::string toml_text(const Endpoint& value) {
  return toml_text(value.host.empty() ? std::string() : to_string(value));
}

std::string toml_text(const std::vector<std::uint64_t>& value) {
  std::vector<std::string> texts;
  texts.reserve(value.size());
  for (const std::uint64_t element : value)
    texts.push_back(std::to_string(element));
  return "[" + join_names(texts) + "]";
}

std::optional<std::string> nearest_name(std::string_view text, std::span<const std::string> names) {
  std::optional<std::string> nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(text, name);
    const std::size_t limit = std::max<std::size_t>(1, std::max(text.size(), name.size()) / 3);
    if (distance <= limit && distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string join_names(std::span<const std::string> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace stagger
