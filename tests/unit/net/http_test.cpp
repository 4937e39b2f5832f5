#include "net/http.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace stagger {

namespace {

TEST(Http, a_problem_is_json_with_type_title_status_and_detail) {
  const HttpResponse response = problem(404, "there is no \"/x\"");
  EXPECT_EQ(response.status, 404U);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(
      nlohmann::json::parse(response.body),
      (nlohmann::json{
          {"type", "about:blank"},
          {"title", "Not Found"},
          {"status", 404},
          {"detail", "there is no \"/x\""}}));
}

TEST(Http, a_problem_may_quote_bytes_that_are_no_text) {
  const auto body = nlohmann::json::parse(problem(400, "bad \xff\n").body);
  EXPECT_EQ(body["detail"], "bad \xef\xbf\xbd\n");
}

TEST(Http, a_status_without_a_title_of_its_own_is_still_named) {
  EXPECT_EQ(nlohmann::json::parse(problem(418, "").body)["title"], "Client Error");
  EXPECT_EQ(nlohmann::json::parse(problem(599, "").body)["title"], "Server Error");
}

}  // namespace

}  // namespace stagger
