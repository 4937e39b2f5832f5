#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "net/endpoint.hpp"
#include "net/time.hpp"

/// Config values between TOML and the structs of engine/config.hpp, and help for those who mistype.
/// Pure.
namespace stagger {

/// Something that no key takes: a date, a table, an array that holds more than integers.
struct UnusedToml {
  std::string type;
};

/// A value as it stands in the file.
using ConfigValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, UnusedToml>;

/// "integer", "string", …: what was found, for messages.
std::string type_name(const ConfigValue& value);

/// As TOML that reads back to the same value, bit for bit. Durations are in seconds; an unset
/// value is "auto"; an endpoint without a host is the empty string.
std::string toml_text(bool value);
std::string toml_text(std::uint32_t value);
std::string toml_text(std::uint64_t value);
std::string toml_text(double value);
std::string toml_text(std::string_view value);
std::string toml_text(const std::string& value);
std::string toml_text(const std::optional<double>& value);
std::string toml_text(const std::optional<std::uint32_t>& value);
std::string toml_text(Duration value);
std::string toml_text(const Endpoint& value);
std::string toml_text(const std::vector<std::uint64_t>& value);

template <class Enum>
  requires std::is_enum_v<Enum>
std::string toml_text(Enum value) {
  return toml_text(to_string(value));
}

template <class Enum>
  requires std::is_enum_v<Enum>
std::string toml_text(const std::optional<Enum>& value) {
  return value ? toml_text(*value) : "\"auto\"";
}

/// The name that is likely meant: nearest by insertions, deletions, substitutions and swaps of
/// neighbours, the first of equals; none when all are far.
std::optional<std::string> nearest_name(std::string_view text, std::span<const std::string> names);

/// "a, b, c".
std::string join_names(std::span<const std::string> names);

}  // namespace stagger
