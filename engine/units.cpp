#include "engine/units.hpp"

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace stagger {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  double number = 0.0;
  const char* const end = std::to_address(text.end());
  const auto [stop, code] = std::from_chars(std::to_address(text.begin()), end, number);
  if (code != std::errc{}) return std::nullopt;
  const std::string_view name(stop, end);
  for (const Unit& unit : units) {
    const double value = number * unit.factor;
    if (unit.name == name && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

Error refusal(std::string_view text, std::string_view expected) {
  return Error{.code = Errc::refused, .detail = fmt::format("{}: expected {}", text, expected)};
}

}  // namespace

Result<double> parse_rate(std::string_view text) {
  static constexpr Unit units[] = {
      {"", 1.0}, {"bit", 1.0}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}};
  const auto rate = parse_with_unit(text, units);
  if (!rate || !(*rate > 0)) {
    return refusal(text, "a finite rate above 0, such as 1gbit, 200mbit or 1e9 (bit/s)");
  }
  return *rate;
}

Result<double> parse_microseconds(std::string_view text) {
  static constexpr Unit units[] = {{"", 1.0}, {"ns", 1e-3}, {"us", 1.0}, {"ms", 1e3}, {"s", 1e6}};
  const auto time = parse_with_unit(text, units);
  if (!time || !(*time >= 0)) {
    return refusal(text, "a finite time, 0 or above, such as 50us, 0.5ms or 50 (microseconds)");
  }
  return *time;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr Unit units[] = {
      {"", 1.0},
      {"b", 1.0},
      {"kb", 1e3},
      {"mb", 1e6},
      {"gb", 1e9},
      {"KiB", 1024.0},
      {"MiB", 1048576.0},
      {"GiB", 1073741824.0}};
  constexpr double bytes_max = 1e15;
  const auto bytes = parse_with_unit(text, units);
  if (!bytes || !(*bytes >= 1) || *bytes > bytes_max) {
    return refusal(text, "a number of bytes, 1 or above, such as 64KiB, 1mb or 65536");
  }
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace stagger
