#pragma once

#include <cstdint>
#include <string_view>

#include "net/error.hpp"

/// Numbers with a unit, as people write them on a command line. Pure. Each fails with refused; the
/// detail begins with the text and says what is expected.
namespace stagger {

/// "1gbit", "200mbit", "56kbit", "9600bit" or "1e9" (bit/s), decimal units: a finite number above
/// 0.
Result<double> parse_rate(std::string_view text);

/// "50us", "0.5ms", "1s", "200ns" or "50" (microseconds): a finite number, 0 or above.
Result<double> parse_microseconds(std::string_view text);

/// "64KiB", "256kb", "1MiB" or "65536" (bytes): a whole number of bytes, 1 or above.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace stagger
