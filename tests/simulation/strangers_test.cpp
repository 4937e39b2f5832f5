#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/job.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

// Peers that are no worker of ours, or no good one: they lose their connection with a reason, and
// nobody else notices.
namespace stagger {
namespace {

using testing::HasSubstr;

const Endpoint ps{.host = "ps", .port = 7000};

Config stranger_config() {
  Config config = synthetic_config();
  config.job.iterations = 40;
  return config;
}

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

struct Frame {
  std::vector<std::uint64_t> head;
  std::vector<float> payload;
};

/// What a peer hears back.
struct Answers {
  std::vector<std::string> refusals;
  bool ended = false;
  bool begun = false;
};

Task<void> send(Connection& connection, Frame frame) {
  const FrameView view{
      .head = std::as_bytes(std::span(frame.head)),
      .payload = std::as_bytes(std::span(frame.payload))};
  co_await connection.send(view, 5s);
}

/// One frame; false when the connection has ended.
Task<bool> hear(Connection& connection, std::uint64_t job, Answers& answers) {
  const auto frame = co_await connection.receive_head(time_point_max);
  if (!frame) {
    answers.ended = true;
    co_return false;
  }
  std::vector<std::byte> payload(frame->payload_bytes);
  if (!payload.empty()) co_await connection.receive_payload(payload, 5s);
  const auto message = decode_message(job, *frame);
  if (!message) co_return true;
  if (const auto* refuse = std::get_if<Refuse>(&*message)) {
    answers.refusals.push_back(refuse->reason);
  }
  if (std::holds_alternative<Begin>(*message)) answers.begun = true;
  co_return true;
}

/// Connects, sends, and listens until the other side closes.
Task<void> speak(SimWorld& world, Frame frame, std::uint64_t job, Answers& answers) {
  auto connection = co_await world.host("stranger").network.connect(ps, time_point_max);
  co_await send(**connection, std::move(frame));
  while (co_await hear(**connection, job, answers)) {
  }
}

Hello hello_of(const Config& config) {
  const auto model = build_model(config, data(), 1);
  return worker_options(config, *model, Iteration(1), 2).client.hello;
}

class Strangers : public testing::Test {
 protected:
  /// The refusal of a frame that is sent while a run is under way; the run ends as if nothing had
  /// been.
  std::string refusal(const Frame& frame, RefusalReason reason) {
    SimCluster quiet(stranger_config(), data());
    quiet.start_all();
    quiet.run_to_end();

    SimCluster cluster(stranger_config(), data());
    cluster.start_all();
    cluster.run_until_iteration(0, 5);
    Answers answers;
    cluster.world().run("stranger", speak(cluster.world(), frame, job_hash("synthetic"), answers));
    cluster.run_to_end();
    EXPECT_TRUE(answers.ended);
    EXPECT_EQ(cluster.refused(reason), 1U);
    EXPECT_EQ(cluster.refused_frames(), 1U);
    const Arena one = quiet.server().center();
    const Arena other = cluster.server().center();
    EXPECT_TRUE(std::equal(one.all().begin(), one.all().end(), other.all().begin()));
    return answers.refusals.size() == 1 ? answers.refusals.front() : "no refusal";
  }

  std::string refusal_of_hello(const std::function<void(Hello&)>& change) {
    Hello hello = hello_of(stranger_config());
    change(hello);
    return refusal(
        {.head = encode_message(job_hash("synthetic"), hello), .payload = {}},
        RefusalReason::not_a_member);
  }
};

TEST_F(Strangers, with_bytes_that_are_no_message_are_refused) {
  EXPECT_NE(
      refusal({.head = {1, 2, 3, 4}, .payload = {}}, RefusalReason::bad_message), "no refusal");
}

TEST_F(Strangers, of_another_job_are_told_which_one_this_is) {
  const Frame frame{.head = encode_message(job_hash("other"), example_hello()), .payload = {}};
  EXPECT_THAT(refusal(frame, RefusalReason::wrong_job), HasSubstr("this is job \"synthetic\""));
}

TEST_F(Strangers, are_refused_unless_they_begin_with_hello) {
  const Frame frame{
      .head = encode_message(job_hash("synthetic"), Prepare{.agreement = 1}), .payload = {}};
  EXPECT_THAT(refusal(frame, RefusalReason::bad_message), HasSubstr("prepare before hello"));
}

TEST_F(Strangers, that_differ_are_told_both_sides_and_the_first_difference) {
  EXPECT_THAT(
      refusal_of_hello([](Hello& hello) { hello.protocol = 9; }),
      HasSubstr("protocol version 9, the PS speaks 3"));
  EXPECT_THAT(
      refusal_of_hello([](Hello& hello) { hello.world = 4; }),
      HasSubstr("cluster.workers is 4 at the worker and 3 at the PS"));
  const std::string other_model = refusal_of_hello([](Hello& hello) {
    ++hello.schema_hash;
    hello.parameters[1].shape = {99};
  });
  EXPECT_THAT(other_model, HasSubstr("parameter 1"));
  EXPECT_THAT(other_model, HasSubstr("99"));
  EXPECT_THAT(
      refusal_of_hello([](Hello& hello) { hello.settings += "data.batch = 5\n"; }),
      HasSubstr("data.batch = 5"));
}

TEST_F(Strangers, get_no_rank_that_is_taken_or_does_not_exist) {
  EXPECT_THAT(
      refusal_of_hello([](Hello& hello) { hello.rank = 2; }), HasSubstr("live worker at worker2"));
  EXPECT_THAT(refusal_of_hello([](Hello& hello) { hello.rank = 3; }), HasSubstr("ranks 0..2"));
  EXPECT_THAT(
      refusal_of_hello([](Hello& hello) { hello.rank = -1; }), HasSubstr("all 3 ranks are taken"));
}

/// A member as it should be until it has its plan; then it sends one frame.
Task<void> misbehave(
    SimWorld& world, Hello hello, std::size_t layers, Frame frame, Answers& answers) {
  const std::uint64_t job = job_hash(hello.job);
  auto connection = co_await world.host("worker2").network.connect(ps, time_point_max);
  Frame greeting{.head = encode_message(job, hello), .payload = {}};
  co_await send(**connection, std::move(greeting));
  const Profile profile{
      .forward = std::vector<Duration>(layers, 1ms),
      .backward = std::vector<Duration>(layers, 2ms)};
  Frame times{.head = encode_message(job, profile), .payload = {}};
  co_await send(**connection, std::move(times));
  while (!answers.begun && co_await hear(**connection, job, answers)) {
  }
  co_await send(**connection, std::move(frame));
  while (co_await hear(**connection, job, answers)) {
  }
}

struct Misdeed {
  std::string name;
  Message message;
  std::size_t payload_floats;
  RefusalReason reason;
  std::string words;
};

Push push_of(std::uint32_t group, std::uint64_t iteration, std::uint32_t plan = 1) {
  return {
      {.id = {.round = {.group = GroupId(group), .iteration = Iteration(iteration)}, .chunk = 0},
       .plan = PlanVersion(plan)}};
}

class Members : public testing::TestWithParam<Misdeed> {};

TEST_P(Members, that_misbehave_are_dismissed_with_a_reason_and_the_others_finish) {
  const Misdeed& misdeed = GetParam();
  SimCluster cluster(stranger_config(), data());
  cluster.start_server();
  cluster.start_worker(0);
  cluster.start_worker(1);
  const AlignedFloats payload(misdeed.payload_floats);
  Frame frame{
      .head = encode_message(job_hash("synthetic"), misdeed.message, payload.span()),
      .payload = {payload.span().begin(), payload.span().end()}};
  Answers answers;
  Hello hello = hello_of(cluster.config());
  const auto layers = build_model(cluster.config(), data(), 1)->layer_names().size();
  cluster.world().run(
      "member", misbehave(cluster.world(), std::move(hello), layers, std::move(frame), answers));
  cluster.run_to_end();
  EXPECT_TRUE(answers.begun);
  EXPECT_TRUE(answers.ended);
  ASSERT_FALSE(answers.refusals.empty());
  EXPECT_THAT(answers.refusals.front(), HasSubstr(misdeed.words));
  EXPECT_EQ(cluster.refused(misdeed.reason), 1U);
  EXPECT_EQ(cluster.state(0), Membership::State::left);
  EXPECT_EQ(cluster.state(1), Membership::State::left);
  EXPECT_EQ(cluster.state(2), Membership::State::gone);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(40));
  const Arena center = cluster.server().center();
  for (const float value : center.all())
    ASSERT_TRUE(std::isfinite(value));
}

// Group 2 is due in iteration 1: (3 - 2) mod 3 == 1 mod 3.
INSTANTIATE_TEST_SUITE_P(
    Misdeeds,
    Members,
    testing::Values(
        Misdeed{
            .name = "wrong_length",
            .message = push_of(2, 1),
            .payload_floats = 2,
            .reason = RefusalReason::wrong_length,
            .words = "payload of 8"},
        Misdeed{
            .name = "not_due",
            .message = push_of(0, 1),
            .payload_floats = 2,
            .reason = RefusalReason::stale,
            .words = "not due (period 3)"},
        Misdeed{
            .name = "other_plan",
            .message = push_of(2, 1, 8),
            .payload_floats = 2,
            .reason = RefusalReason::stale,
            .words = "plan version 8"},
        Misdeed{
            .name = "no_such_group",
            .message = push_of(9, 1),
            .payload_floats = 2,
            .reason = RefusalReason::stale,
            .words = "there are 3 groups"},
        Misdeed{
            .name = "not_for_workers",
            .message = Welcome{},
            .payload_floats = 0,
            .reason = RefusalReason::bad_message,
            .words = "a worker does not send welcome"},
        Misdeed{
            .name = "acknowledges",
            .message = Received{},
            .payload_floats = 0,
            .reason = RefusalReason::bad_message,
            .words = "does not send received"},
        Misdeed{
            .name = "probe_unasked",
            .message = Probe{.number = 1, .bytes = 64},
            .payload_floats = 16,
            .reason = RefusalReason::bad_message,
            .words = "not asked for"},
        Misdeed{
            .name = "begin_again",
            .message = example_hello(),
            .payload_floats = 0,
            .reason = RefusalReason::bad_message,
            .words = "does not send hello"}),
    [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace stagger
