#include "engine/units.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(Units, a_rate_has_a_decimal_unit_or_is_in_bits_per_second) {
  EXPECT_EQ(parse_rate("1gbit").value(), 1e9);
  EXPECT_EQ(parse_rate("2.5mbit").value(), 2.5e6);
  EXPECT_EQ(parse_rate("56kbit").value(), 56e3);
  EXPECT_EQ(parse_rate("1e9").value(), 1e9);
  EXPECT_EQ(parse_rate("8bit").value(), 8.0);
}

TEST(Units, a_time_has_a_unit_or_is_in_microseconds) {
  EXPECT_EQ(parse_microseconds("50us").value(), 50.0);
  EXPECT_EQ(parse_microseconds("0.5ms").value(), 500.0);
  EXPECT_EQ(parse_microseconds("2s").value(), 2e6);
  EXPECT_EQ(parse_microseconds("500ns").value(), 0.5);
  EXPECT_EQ(parse_microseconds("0").value(), 0.0);
}

TEST(Units, what_is_no_rate_is_refused_with_what_is_expected) {
  EXPECT_EQ(
      parse_rate("fast").error().detail,
      "fast: expected a finite rate above 0, such as 1gbit, 200mbit or 1e9 (bit/s)");
  for (const char* text :
       {"",
        "0",
        "0gbit",
        "-1gbit",
        "inf",
        "nan",
        "1e999",
        "1e308gbit",
        "1GB",
        "1 gbit",
        "1gbit ",
        "gbit"}) {
    EXPECT_TRUE(parse_rate(text).has_error()) << text;
  }
}

TEST(Units, what_is_no_time_is_refused_with_what_is_expected) {
  EXPECT_EQ(
      parse_microseconds("-1us").error().detail,
      "-1us: expected a finite time, 0 or above, such as 50us, 0.5ms or 50 (microseconds)");
  for (const char* text : {"", "us", "inf", "nan", "1e308s", "1min"})
    EXPECT_TRUE(parse_microseconds(text).has_error()) << text;
}

TEST(Units, a_number_of_bytes_has_a_binary_or_a_decimal_unit) {
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536U);
  EXPECT_EQ(parse_bytes("1.5MiB").value(), 1572864U);
  EXPECT_EQ(parse_bytes("2kb").value(), 2000U);
  EXPECT_EQ(parse_bytes("4096").value(), 4096U);
  for (const char* text : {"", "0", "0.5", "-1", "inf", "nan", "1e16", "64 KiB", "64kib"})
    EXPECT_TRUE(parse_bytes(text).has_error()) << text;
}

}  // namespace
}  // namespace stagger
