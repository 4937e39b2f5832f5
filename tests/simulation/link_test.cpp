#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/job.hpp"
#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

// A link that nobody has described is measured where something goes by it.
namespace stagger {
namespace {

using testing::HasSubstr;
using testing::Not;

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

/// Every node's link; a way through the world passes two.
SimCluster::Options world_of(double rate_bits_per_second, Duration latency = 100us) {
  SimCluster::Options options;
  const LinkOptions link{.rate_bits_per_second = rate_bits_per_second, .latency = latency};
  options.node = {.egress = link, .ingress = link};
  return options;
}

Config planner_config() {
  Config config = synthetic_config();
  config.groups.planner = GroupPlanner::optimal;
  return config;
}

TEST(Link, is_measured_within_ten_percent_whatever_its_rate) {
  for (const double rate : {1e6, 1e7, 1e8, 1e9}) {
    SimCluster cluster(planner_config(), data(), world_of(rate));
    cluster.start_all();
    cluster.run_to_end();
    const auto& link = cluster.server().link();
    ASSERT_TRUE(link);
    EXPECT_TRUE(link->measured);
    EXPECT_NEAR(rate_bits_per_second(link->cost) / rate, 1.0, 0.1) << rate;
    EXPECT_NEAR(8 * cluster.metrics().link_rate_bytes_per_second.value() / rate, 1.0, 0.1) << rate;
    EXPECT_THAT(cluster.log(), HasSubstr("link_measured"));
    EXPECT_EQ(cluster.refused_frames(), 0U);
    EXPECT_EQ(cluster.server().status().iteration, Iteration(12));
  }
}

TEST(Link, has_the_start_of_one_way) {
  SimCluster cluster(planner_config(), data(), world_of(1e9, 300us));
  cluster.start_all();
  cluster.run_to_end();
  ASSERT_TRUE(cluster.server().link());
  EXPECT_NEAR(to_microseconds(cluster.server().link()->cost.start), 600.0, 60.0);
}

TEST(Link, is_measured_in_less_than_a_second) {
  Config config = planner_config();
  config.cluster.workers = 8;
  SimCluster cluster(config, data(), world_of(1e8));
  cluster.start_all();
  cluster.run_to_end();
  const Duration start = cluster.server().totals().started_at.time_since_epoch();
  EXPECT_LT(start, 1s);
}

TEST(Link, is_not_measured_where_it_is_given_or_not_needed) {
  Config config = planner_config();
  config.link = {.rate_bits_per_second = 1e7, .start_us = 20.0};
  SimCluster given(config, data(), world_of(1e8));
  given.start_all();
  given.run_to_end();
  ASSERT_TRUE(given.server().link());
  EXPECT_FALSE(given.server().link()->measured);
  EXPECT_NEAR(rate_bits_per_second(given.server().link()->cost), 1e7, 1.0);
  EXPECT_THAT(given.log(), Not(HasSubstr("link_measured")));
  SimCluster unneeded(synthetic_config(), data(), world_of(1e8));
  unneeded.start_all();
  unneeded.run_to_end();
  EXPECT_FALSE(unneeded.server().link());
  EXPECT_THAT(unneeded.log(), Not(HasSubstr("link_measured")));
}

TEST(Link, changes_no_parameter_where_only_slots_go_by_it) {
  Config config = synthetic_config();
  SimCluster paper(config, data(), world_of(1e8));
  paper.start_all();
  paper.run_to_end();
  config.slots.rule = SlotRule::measured;
  config.link.rate_bits_per_second = 1e9;
  SimCluster given(config, data(), world_of(1e8));
  given.start_all();
  given.run_to_end();
  config.link.rate_bits_per_second.reset();
  SimCluster measured(config, data(), world_of(1e8));
  measured.start_all();
  measured.run_to_end();
  ASSERT_TRUE(measured.server().link());
  const Arena one = given.server().center();
  const Arena other = measured.server().center();
  EXPECT_TRUE(std::ranges::equal(one.all(), other.all()));
}

/// A member that leaves, without a word, as soon as it is asked for a probe.
Task<void> leave_when_asked(SimWorld& world, Hello hello, std::size_t layers, bool& asked) {
  const std::uint64_t job = job_hash(hello.job);
  const Endpoint ps{.host = "ps", .port = 7000};
  auto connection = co_await world.host("stranger").network.connect(ps, time_point_max);
  const auto greeting = encode_message(job, hello);
  const FrameView first{.head = std::as_bytes(std::span(greeting)), .payload = {}};
  co_await (*connection)->send(first, 5s);
  const Profile profile{
      .forward = std::vector<Duration>(layers, 1ms),
      .backward = std::vector<Duration>(layers, 2ms)};
  const auto times = encode_message(job, profile);
  const FrameView second{.head = std::as_bytes(std::span(times)), .payload = {}};
  co_await (*connection)->send(second, 5s);
  while (!asked) {
    const auto frame = co_await (*connection)->receive_head(time_point_max);
    if (!frame) co_return;
    const auto message = decode_message(job, *frame);
    asked = message && std::holds_alternative<Probe>(*message);
  }
  (*connection)->close();
}

TEST(Link, is_measured_by_the_others_when_a_worker_dies_meanwhile) {
  SimCluster cluster(planner_config(), data(), world_of(1e7));
  cluster.start_server();
  cluster.start_worker(0);
  cluster.start_worker(2);
  const auto model = build_model(cluster.config(), data(), 1);
  const Hello hello = worker_options(cluster.config(), *model, Iteration(1), 1).client.hello;
  bool asked = false;
  cluster.world().run(
      "stranger", leave_when_asked(cluster.world(), hello, model->layer_names().size(), asked));
  EXPECT_TRUE(asked);
  cluster.run_for(500ms);
  EXPECT_FALSE(cluster.server().status().started);
  cluster.start_worker(1);
  cluster.run_to_end();
  EXPECT_THAT(cluster.log(), HasSubstr("link_not_measured"));
  ASSERT_TRUE(cluster.server().link());
  EXPECT_NEAR(rate_bits_per_second(cluster.server().link()->cost) / 1e7, 1.0, 0.1);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(12));
  for (const std::uint32_t rank : {0U, 1U, 2U})
    EXPECT_EQ(cluster.state(rank), Membership::State::left);
}

TEST(Link, that_nobody_answers_for_ends_the_run_with_advice) {
  Config config = planner_config();
  config.timeouts.join = 3s;
  SimCluster cluster(config, data(), world_of(1e8));
  cluster.start_all();
  cluster.run_for(2ms);
  for (const char* node : {"worker0", "worker1", "worker2"})
    cluster.world().set_clogged(node, true);
  EXPECT_THROW(cluster.run_to_end(), ServerFailure);
}

}  // namespace
}  // namespace stagger
