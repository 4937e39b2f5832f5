#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/safetensors.hpp"
#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

// Workers whose clocks agree in nothing keep slots that all count from one moment.
namespace stagger {
namespace {

constexpr std::uint32_t workers = 4;

Config shared_config(SlotClock clock) {
  Config config = synthetic_config();
  config.cluster.workers = workers;
  config.job.iterations = 400;
  config.model.hidden = {192, 64};
  config.wire.chunk_bytes = 4096;  // a push has many chunks, so that it takes time
  config.slots.admission = Admission::slots;
  config.slots.clock = clock;
  config.slots.rule = SlotRule::measured;
  config.link.rate_bits_per_second = 1.5e8;
  config.timeouts.heartbeat = 100ms;
  return config;
}

/// Origins minutes apart, rates up to 50 ppm wrong.
SimCluster::Options wrong_clocks() {
  SimCluster::Options options;
  options.flops_per_second = 2e7;
  const LinkOptions link{.rate_bits_per_second = 1.5e8, .latency = 50us};
  options.node = {.egress = link, .ingress = link, .clock = {.offset = 40s, .drift_ppm = -20.0}};
  for (const ClockView& clock : std::vector<ClockView>{
           {.offset = 5s, .drift_ppm = 50.0},
           {.offset = 300s, .drift_ppm = -50.0},
           {.offset = 0s, .drift_ppm = 13.0},
           {.offset = 2s, .drift_ppm = 0.0}}) {
    NodeOptions node = options.node;
    node.clock = clock;
    node.compute_scale = 1.0 + 0.01 * static_cast<double>(options.workers.size());
    options.workers.push_back(node);
  }
  return options;
}

Duration true_offset(SimCluster& cluster, std::uint32_t rank) {
  const std::string node = "worker" + std::to_string(rank);
  return cluster.world().host("ps").clock.now() - cluster.world().host(node).clock.now();
}

void expect_clocks_known(SimCluster& cluster) {
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    const std::string node = "worker" + std::to_string(rank);
    const auto reading = cluster.worker(rank).clock().at(cluster.world().host(node).clock.now());
    ASSERT_TRUE(reading.has_value()) << rank;
    EXPECT_LE(std::chrono::abs(reading->offset - true_offset(cluster, rank)), reading->uncertainty)
        << rank;
    EXPECT_LT(reading->uncertainty, 1ms) << rank;
  }
}

struct Meetings {
  std::uint64_t samples = 0;
  std::uint64_t meeting = 0;  ///< with more than one push under way
  std::uint32_t most = 0;
};

/// From iteration 100 on, when rhythms are known.
Meetings meetings_of(SimCluster& cluster) {
  cluster.start_all();
  cluster.run_until_iteration(0, 100);
  Meetings meetings;
  while (cluster.worker(0).iteration() < Iteration(380)) {
    cluster.run_for(50us);
    const std::uint32_t pushes = cluster.server().status().pushes_in_flight;
    ++meetings.samples;
    if (pushes > 1) ++meetings.meeting;
    meetings.most = std::max(meetings.most, pushes);
  }
  cluster.run_to_end();
  return meetings;
}

TEST(SharedClock, keeps_slots_apart_that_meet_when_each_worker_counts_from_its_own_backward) {
  SimCluster local(
      shared_config(SlotClock::local), synthetic_dataset(synthetic_samples, 1), wrong_clocks());
  SimCluster shared(
      shared_config(SlotClock::shared), synthetic_dataset(synthetic_samples, 1), wrong_clocks());
  const Meetings apart = meetings_of(local);
  const Meetings together = meetings_of(shared);
  EXPECT_LT(10 * together.meeting, apart.meeting);
  EXPECT_EQ(
      parameters_sha256(local.server().center()), parameters_sha256(shared.server().center()));
}

TEST(SharedClock, is_known_to_every_worker_within_its_uncertainty_from_the_second_iteration_on) {
  SimCluster cluster(
      shared_config(SlotClock::shared), synthetic_dataset(synthetic_samples, 1), wrong_clocks());
  cluster.start_all();
  for (std::uint64_t iteration = 2; iteration < 400; iteration += 5) {
    cluster.run_until_iteration(0, iteration);
    expect_clocks_known(cluster);
  }
  cluster.run_to_end();
  EXPECT_GT(cluster.server().totals().clock_uncertainty, Duration{0});
  EXPECT_LT(cluster.server().totals().clock_uncertainty, 1ms);
}

TEST(SharedClock, gives_the_same_trace_for_the_same_seed) {
  std::vector<std::uint64_t> hashes;
  for (const std::uint64_t seed : {3U, 3U, 4U}) {
    SimCluster::Options options = wrong_clocks();
    options.seed = seed;
    SimCluster cluster(
        shared_config(SlotClock::shared), synthetic_dataset(synthetic_samples, 1), options);
    cluster.start_all();
    cluster.run_to_end();
    hashes.push_back(cluster.world().trace_hash());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], hashes[2]);
}

}  // namespace
}  // namespace stagger
