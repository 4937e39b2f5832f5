#include "engine/control.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/progress.hpp"
#include "engine/report.hpp"
#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

namespace stagger {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  static Config config() {
    Config config = synthetic_config();
    config.job.iterations = 60;
    return config;
  }

  static Task<void> ask(Control& control, HttpRequest request, HttpResponse& response) {
    response = co_await control.handle(std::move(request));
  }

  HttpResponse ask(
      const std::string& method, const std::string& path, const std::string& body = {}) {
    Control control(cluster_.server(), cluster_.registry(), cluster_.world().clock());
    HttpResponse response;
    HttpRequest request{
        .method = method,
        .path = path,
        .query = {},
        .body = body,
        .peer = "127.0.0.1:5000",
        .authorization = {}};
    cluster_.world().run("ask", ask(control, std::move(request), response));
    return response;
  }

  void train_to(std::uint64_t iteration) {
    cluster_.start_all();
    cluster_.run_until_iteration(0, iteration);
  }

  SimCluster cluster_{config(), synthetic_dataset(synthetic_samples, 1)};
};

TEST_F(ControlTest, says_that_it_lives_and_whether_it_trains) {
  EXPECT_EQ(ask("GET", "/healthz").status, 200U);
  EXPECT_EQ(ask("GET", "/readyz").status, 503U);
  EXPECT_EQ(ask("GET", "/v1/period").status, 503U);
  train_to(5);
  EXPECT_EQ(ask("GET", "/healthz").status, 200U);
  EXPECT_EQ(ask("GET", "/readyz").status, 200U);
  cluster_.run_to_end();
}

TEST_F(ControlTest, tells_the_status_before_and_during_training) {
  const json waiting = json::parse(ask("GET", "/v1/status").body);
  EXPECT_EQ(waiting["state"], "waiting");
  EXPECT_EQ(waiting["job"], "synthetic");
  EXPECT_EQ(waiting["workers"].size(), 3U);
  EXPECT_EQ(waiting["workers"][1]["state"], "expected");
  train_to(20);
  const json training = json::parse(ask("GET", "/v1/status").body);
  EXPECT_EQ(training["state"], "training");
  EXPECT_EQ(training["period"], 3);
  EXPECT_EQ(training["last_iteration"], 60);
  EXPECT_GE(training["iteration"], 15);
  EXPECT_EQ(training["workers"][1]["state"], "active");
  cluster_.run_to_end();
}

TEST_F(ControlTest, reads_and_changes_the_period) {
  train_to(10);
  EXPECT_EQ(json::parse(ask("GET", "/v1/period").body)["period"], 3);
  const HttpResponse changed = ask("PUT", "/v1/period", R"({"period": 5})");
  EXPECT_EQ(changed.status, 200U);
  const json answer = json::parse(changed.body);
  EXPECT_EQ(answer["period"], 5);
  EXPECT_GE(answer["iteration"], 10);
  const json period = json::parse(ask("GET", "/v1/period").body);
  EXPECT_EQ(period["period"], 5);
  EXPECT_EQ(period["iteration"], answer["iteration"]);
  EXPECT_EQ(period["plan_version"], 2);
  cluster_.run_to_end();
}

TEST_F(ControlTest, refuses_bodies_that_are_no_period_and_says_what_it_expects) {
  train_to(10);
  for (const char* body :
       {"",
        "5",
        "[]",
        "{}",
        "{\"period\": 0}",
        "{\"period\": -1}",
        "{\"period\": 2.5}",
        "{\"period\": \"5\"}",
        "{\"perod\": 5}",
        "{\"period\": 5, \"alpha\": 1}",
        "{\"period\": 4294967296}",
        "{\"period\": 5"}) {
    const HttpResponse refused = ask("PUT", "/v1/period", body);
    EXPECT_EQ(refused.status, 400U) << body;
    EXPECT_EQ(refused.content_type, "application/problem+json") << body;
    EXPECT_THAT(refused.body, HasSubstr("N >= 1")) << body;
  }
  EXPECT_EQ(cluster_.server().plans().plans().size(), 1U);
  cluster_.run_to_end();
}

TEST_F(ControlTest, says_why_a_change_is_not_possible) {
  const HttpResponse refused = ask("PUT", "/v1/period", R"({"period": 5})");
  EXPECT_EQ(refused.status, 409U);
  EXPECT_THAT(refused.body, HasSubstr("not started"));
}

TEST_F(ControlTest, knows_its_resources_and_their_methods) {
  EXPECT_EQ(ask("GET", "/nowhere").status, 404U);
  EXPECT_THAT(ask("GET", "/nowhere").body, HasSubstr("/v1/status"));
  const HttpResponse refused = ask("DELETE", "/v1/period");
  EXPECT_EQ(refused.status, 405U);
  ASSERT_EQ(refused.headers.size(), 1U);
  EXPECT_EQ(refused.headers[0].first, "Allow");
  EXPECT_THAT(refused.headers[0].second, HasSubstr("PUT"));
  EXPECT_EQ(ask("PUT", "/v1/status").status, 405U);
}

TEST_F(ControlTest, shows_the_metrics_of_the_run) {
  train_to(20);
  cluster_.run_to_end();
  const HttpResponse metrics = ask("GET", "/metrics");
  EXPECT_EQ(metrics.content_type, Registry::content_type);
  EXPECT_THAT(metrics.body, HasSubstr("stagger_iterations_total{rank=\"2\"} 60"));
  EXPECT_THAT(metrics.body, HasSubstr("stagger_rounds_total 63"));
  EXPECT_THAT(metrics.body, HasSubstr("stagger_worker_up{rank=\"0\"} 0"));
}

TEST_F(ControlTest, reports_the_run_for_programs_and_for_people) {
  train_to(10);
  ASSERT_EQ(ask("PUT", "/v1/period", R"({"period": 5})").status, 200U);
  cluster_.world().crash("worker2");
  cluster_.run_to_end();
  const std::string text = report_json(
      {.server = &cluster_.server(),
       .evaluation = Evaluation{.accuracy = 0.875, .loss = 0.5, .samples = 640},
       .parameters_sha256 = "abc123"});
  const json report = json::parse(text);
  EXPECT_EQ(report["job"], "synthetic");
  EXPECT_EQ(report["iterations"], 60);
  EXPECT_EQ(report["workers"], 3);
  EXPECT_EQ(report["test_accuracy"], 0.875);
  EXPECT_EQ(report["parameters_sha256"], "abc123");
  EXPECT_EQ(report["rounds"], cluster_.server().status().rounds_closed);
  ASSERT_EQ(report["period_changes"].size(), 1U);
  EXPECT_EQ(report["period_changes"][0]["period"], 5);
  ASSERT_EQ(report["workers_lost"].size(), 1U);
  EXPECT_EQ(report["workers_lost"][0]["rank"], 2);
  EXPECT_GT(report["wall_seconds"], 0.0);
  // The crashed worker said no farewell: the figures are the others'.
  EXPECT_EQ(report["iteration_us"]["count"], 2 * 59);
  EXPECT_GT(report["iteration_us"]["mean"], 0.0);
  EXPECT_GT(report["push_us"]["count"], 0);
  EXPECT_EQ(report["push_us"]["count"], report["ready_to_done_us"]["count"]);
  EXPECT_GE(report["ready_to_done_us"]["p50"], report["push_us"]["p50"]);
  const std::string for_people = report_text(text);
  EXPECT_THAT(for_people, HasSubstr("87.50 % of 640 test samples"));
  EXPECT_THAT(for_people, HasSubstr("lost            rank 2"));
  EXPECT_THAT(for_people, HasSubstr("sha256 abc123"));
}

TEST(Progress, is_one_line_with_everything_that_matters) {
  ServerStatus status;
  status.iteration = Iteration(120);
  status.last_iteration = Iteration(470);
  status.loss = 0.54321;
  status.pushes_in_flight = 2;
  EXPECT_EQ(
      progress_text(status, 3, 12345.6, 41.7),
      "iteration 120/470  loss 0.5432  12346 samples/s  T=3  in flight 2  42 s left");
}

TEST(PlanText, shows_each_group_with_its_window) {
  Plan plan;
  plan.policy.period = 2;
  plan.policy.workers = 4;
  plan.groups = {
      {.range = {.layers = {.begin = 1, .end = 3}, .bytes = 400},
       .slot = {.current = 2ms, .window = 4ms, .slot = 1ms}},
      {.range = {.layers = {.begin = 0, .end = 1}, .bytes = 100},
       .slot = {.current = 6ms, .window = 2ms, .slot = 500us}}};
  set_phases(plan);
  const std::vector<LayerProfile> layers{{.name = "conv1"}, {.name = "fc1"}, {.name = "fc2"}};
  const json value = json::parse(plan_json(plan, layers));
  EXPECT_EQ(value["groups"][0]["layers"], json({"fc1", "fc2"}));
  EXPECT_EQ(value["groups"][0]["bytes"], 400);
  EXPECT_EQ(value["groups"][0]["due"], json({2}));
  EXPECT_EQ(value["groups"][1]["due"], json({1}));
  EXPECT_EQ(value["groups"][0]["cur_us"], 2000.0);
  EXPECT_EQ(value["groups"][1]["slot_us"], 500.0);
  const std::string text = plan_text(plan, layers);
  EXPECT_THAT(text, HasSubstr("fc1..fc2"));
  EXPECT_THAT(text, HasSubstr("conv1"));
  EXPECT_THAT(text, HasSubstr("##"));
}

}  // namespace
}  // namespace stagger
