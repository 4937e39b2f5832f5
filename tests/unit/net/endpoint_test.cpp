#include <string>

#include <gtest/gtest.h>

#include "net/network.hpp"

namespace stagger {
namespace {

struct Good {
  std::string text;
  Endpoint endpoint;
};

struct Bad {
  std::string text;
  std::string reason;
};

TEST(EndpointText, is_parsed_and_printed_back) {
  const Good table[] = {
      {.text = "127.0.0.1:7000", .endpoint = {.host = "127.0.0.1", .port = 7000}},
      {.text = "ps-0.cluster:1", .endpoint = {.host = "ps-0.cluster", .port = 1}},
      {.text = "[::1]:65535", .endpoint = {.host = "::1", .port = 65535}},
      {.text = "0.0.0.0:0", .endpoint = {.host = "0.0.0.0", .port = 0}},
  };
  for (const Good& good : table) {
    const Result<Endpoint> parsed = parse_endpoint(good.text);
    ASSERT_TRUE(parsed) << good.text << ": " << parsed.error().detail;
    EXPECT_EQ(*parsed, good.endpoint) << good.text;
    EXPECT_EQ(to_string(*parsed), good.text);
  }
}

TEST(EndpointText, is_refused_with_the_reason) {
  const Bad table[] = {
      {.text = "localhost", .reason = "port is missing"},
      {.text = "localhost:", .reason = "port is missing"},
      {.text = "[::1]", .reason = "port is missing"},
      {.text = ":7000", .reason = "host is missing"},
      {.text = "[]:7000", .reason = "host is missing"},
      {.text = "", .reason = "port is missing"},
      {.text = "a:65536", .reason = "0 to 65535"},
      {.text = "a:99999999999", .reason = "0 to 65535"},
      {.text = "a:-1", .reason = "0 to 65535"},
      {.text = "a:70 ", .reason = "0 to 65535"},
      {.text = "a:+70", .reason = "0 to 65535"},
      {.text = "::1:7000", .reason = "in brackets"},
      {.text = "[::1:7000", .reason = "']' is missing"},
      {.text = "[::1]x:7000", .reason = "may follow"},
  };
  for (const Bad& bad : table) {
    const Result<Endpoint> parsed = parse_endpoint(bad.text);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code, Errc::bad_address);
    EXPECT_NE(parsed.error().detail.find(bad.reason), std::string::npos)
        << bad.text << " → " << parsed.error().detail;
    EXPECT_NE(parsed.error().detail.find("'" + bad.text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace stagger
