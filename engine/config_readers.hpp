#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/config_value.hpp"

/// From a TOML value to a checked value of one kind. Each returns what is wrong, for people, or
/// nothing; `parsed` counts only in the latter case. Pure.
namespace stagger {

using Problem = std::optional<std::string>;

/// Allowed numbers. Infinity as an end means no end; infinity itself is never allowed.
struct Range {
  double low = 0.0;
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   ///< low itself is out
  bool below_high = false;  ///< high itself is out
};

Problem read_integer(
    const ConfigValue& value, std::uint64_t low, std::uint64_t high, std::uint64_t& parsed);

/// "auto" leaves it unset.
Problem read_integer_or_auto(
    const ConfigValue& value,
    std::uint64_t low,
    std::uint64_t high,
    std::optional<std::uint32_t>& parsed);

/// An integer is a number too.
Problem read_number(const ConfigValue& value, const Range& range, double& parsed);

/// "auto" leaves it unset.
Problem read_number_or_auto(
    const ConfigValue& value, const Range& range, std::optional<double>& parsed);

/// Above zero.
Problem read_seconds(const ConfigValue& value, Duration& parsed);

Problem read_flag(const ConfigValue& value, bool& parsed);
Problem read_text(const ConfigValue& value, std::string& parsed);

/// The index of the name.
Problem read_choice(
    const ConfigValue& value, std::span<const std::string> names, std::size_t& index);

/// An empty string is an endpoint without a host, where that is allowed.
Problem read_endpoint(const ConfigValue& value, bool may_be_empty, Endpoint& parsed);

/// 1 to 64 sizes, each from 1 to 65536.
Problem read_sizes(const ConfigValue& value, std::vector<std::size_t>& parsed);

Problem check_path(const std::string& path);

/// The same, or empty for none.
Problem check_optional_path(const std::string& path);

/// A job's name becomes a directory and travels in messages and metrics.
Problem check_job_name(const std::string& name);

}  // namespace stagger
