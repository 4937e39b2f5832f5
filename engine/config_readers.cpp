#include "engine/config_readers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace stagger {
namespace {

std::string wrong_type(std::string_view expected, const ConfigValue& value) {
  return fmt::format("expected {}, found {}", expected, type_name(value));
}

std::string not_known(const std::string& text, std::span<const std::string> names) {
  std::string message =
      fmt::format("{} is not known; known: {}", toml_text(text), join_names(names));
  if (const auto nearest = nearest_name(text, names)) {
    message += fmt::format("; did you mean \"{}\"?", *nearest);
  }
  return message;
}

Problem outside(const Range& range, double value) {
  if (!std::isfinite(value)) return fmt::format("must be a finite number, is {}", value);
  if (range.above_low && !(value > range.low)) {
    return fmt::format("must be above {}, is {}", range.low, value);
  }
  if (value < range.low) return fmt::format("must be at least {}, is {}", range.low, value);
  if (range.below_high && !(value < range.high)) {
    return fmt::format("must be below {}, is {}", range.high, value);
  }
  if (value > range.high) return fmt::format("must be at most {}, is {}", range.high, value);
  return std::nullopt;
}

}  // namespace

Problem read_integer(
    const ConfigValue& value, std::uint64_t low, std::uint64_t high, std::uint64_t& parsed) {
  const auto* const found = std::get_if<std::int64_t>(&value);
  if (found == nullptr) return wrong_type("an integer", value);
  if (std::cmp_less(*found, low)) return fmt::format("must be at least {}, is {}", low, *found);
  if (std::cmp_greater(*found, high)) {
    return fmt::format("must be at most {}, is {}", high, *found);
  }
  parsed = static_cast<std::uint64_t>(*found);
  return std::nullopt;
}

Problem read_integer_or_auto(
    const ConfigValue& value,
    std::uint64_t low,
    std::uint64_t high,
    std::optional<std::uint32_t>& parsed) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    if (*text == "auto") return std::nullopt;
    return fmt::format("expected an integer or \"auto\", found {}", toml_text(*text));
  }
  std::uint64_t found = 0;
  if (Problem problem = read_integer(value, low, high, found)) return problem;
  parsed = static_cast<std::uint32_t>(found);
  return std::nullopt;
}

Problem read_number(const ConfigValue& value, const Range& range, double& parsed) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    parsed = static_cast<double>(*whole);
  } else if (const auto* const found = std::get_if<double>(&value)) {
    parsed = *found;
  } else {
    return wrong_type("a number", value);
  }
  return outside(range, parsed);
}

Problem read_number_or_auto(
    const ConfigValue& value, const Range& range, std::optional<double>& parsed) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    if (*text == "auto") return std::nullopt;
    return fmt::format("expected a number or \"auto\", found {}", toml_text(*text));
  }
  return read_number(value, range, parsed.emplace());
}

Problem read_seconds(const ConfigValue& value, Duration& parsed) {
  constexpr double seconds_max = 1e6;
  double found = 0.0;
  Problem problem = read_number(value, {.high = seconds_max, .above_low = true}, found);
  if (problem) return problem;
  parsed = from_seconds(found);
  if (parsed == Duration{0}) return fmt::format("must be at least a nanosecond, is {}", found);
  return std::nullopt;
}

Problem read_flag(const ConfigValue& value, bool& parsed) {
  const auto* const found = std::get_if<bool>(&value);
  if (found == nullptr) return wrong_type("true or false", value);
  parsed = *found;
  return std::nullopt;
}

Problem read_text(const ConfigValue& value, std::string& parsed) {
  const auto* const found = std::get_if<std::string>(&value);
  if (found == nullptr) return wrong_type("a string", value);
  parsed = *found;
  return std::nullopt;
}

Problem read_choice(
    const ConfigValue& value, std::span<const std::string> names, std::size_t& index) {
  std::string text;
  if (Problem problem = read_text(value, text)) return problem;
  const auto name = std::ranges::find(names, text);
  if (name == names.end()) return not_known(text, names);
  index = static_cast<std::size_t>(std::distance(names.begin(), name));
  return std::nullopt;
}

Problem read_endpoint(const ConfigValue& value, bool may_be_empty, Endpoint& parsed) {
  std::string text;
  if (Problem problem = read_text(value, text)) return problem;
  if (text.empty() && may_be_empty) return std::nullopt;
  auto endpoint = parse_endpoint(text);
  if (endpoint.has_error()) return endpoint.error().detail;
  parsed = *std::move(endpoint);
  return std::nullopt;
}

Problem read_sizes(const ConfigValue& value, std::vector<std::size_t>& parsed) {
  constexpr std::int64_t size_max = 65536;
  constexpr std::size_t count_max = 64;
  const auto* const found = std::get_if<std::vector<std::int64_t>>(&value);
  if (found == nullptr) return wrong_type("a list of integers", value);
  if (found->empty() || found->size() > count_max) {
    return fmt::format("must have 1 to {} elements, has {}", count_max, found->size());
  }
  for (const std::int64_t size : *found) {
    if (size < 1 || size > size_max) {
      return fmt::format("each must lie from 1 to {}, one is {}", size_max, size);
    }
    parsed.push_back(static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

Problem check_path(const std::string& path) {
  if (path.empty()) return "must not be empty";
  if (path.find('\0') != std::string::npos) return "must not contain a zero byte";
  return std::nullopt;
}

Problem check_optional_path(const std::string& path) {
  return path.empty() ? std::nullopt : check_path(path);
}

Problem check_job_name(const std::string& name) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t size_max = 64;
  const bool good = !name.empty() && name.size() <= size_max && name.front() != '.' &&
                    name.front() != '-' && name.find_first_not_of(allowed) == std::string::npos;
  if (good) return std::nullopt;
  return fmt::format(
      "{} must be usable as a directory: 1 to {} of letters, digits, '.', '_' and '-', the "
      "first a letter, a digit or '_'",
      toml_text(name),
      size_max);
}

}  // namespace stagger
