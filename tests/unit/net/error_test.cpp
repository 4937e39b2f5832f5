#include "net/error.hpp"

#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(NetError, describe_names_the_code_and_the_detail) {
  EXPECT_EQ(
      describe(Error{.code = Errc::disconnected, .detail = "127.0.0.1:7000 closed"}),
      "disconnected: 127.0.0.1:7000 closed");
  EXPECT_EQ(describe(Error{.code = Errc::closed, .detail = ""}), "closed");
}

TEST(NetError, every_code_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Errc::not_found); ++code) {
    names.insert(to_string(static_cast<Errc>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Errc::not_found) + 1);
}

TEST(NetError, value_of_a_failed_result_throws_the_sentence) {
  const Result<int> failed = Error{.code = Errc::storage, .detail = "x: disk full"};
  try {
    static_cast<void>(failed.value());
    FAIL() << "did not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "storage: x: disk full");
  }
}

}  // namespace
}  // namespace stagger
