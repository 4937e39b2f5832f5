#include "engine/virtual_cluster.hpp"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/sim/storage.hpp"

namespace stagger {
namespace {

using testing::HasSubstr;

Config replay_config() {
  return parse_config(
      "[job]\niterations = 8\n[backend]\nname = \"replay\"\nprofile = \"resnet50\"\n"
      "[slots]\nadmission = \"none\"\n[cluster]\nworkers = 3\n",
      "c.toml",
      {});
}

VirtualJob job_of(const VirtualCluster& cluster) {
  const SimStorage storage;
  return make_virtual_job(storage, replay_config(), cluster);
}

SimulationResult run(const VirtualJob& job) {
  return simulate(job.config, *job.workload, job.options);
}

std::string mistake(const std::function<void(VirtualCluster&)>& change) {
  VirtualCluster cluster;
  change(cluster);
  try {
    job_of(cluster);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(VirtualCluster, the_ps_has_the_bandwidth_and_the_others_follow_it_unless_told_otherwise) {
  VirtualCluster cluster;
  cluster.bandwidth = "200mbit";
  cluster.latency = "10us";
  const auto same = job_of(cluster);
  EXPECT_EQ(same.options.ps->ingress.rate_bits_per_second, 2e8);
  EXPECT_EQ(same.options.ps->egress.rate_bits_per_second, 2e8);
  EXPECT_EQ(same.options.node.egress.rate_bits_per_second, 2e8);
  EXPECT_EQ(same.options.node.egress.latency, 10us);
  EXPECT_FALSE(same.options.tcp.has_value());
  cluster.reply_bandwidth = "1gbit";
  cluster.worker_bandwidth = "10gbit";
  cluster.buffer = "64KiB";
  const auto other = job_of(cluster);
  EXPECT_EQ(other.options.ps->ingress.rate_bits_per_second, 2e8);
  EXPECT_EQ(other.options.ps->egress.rate_bits_per_second, 1e9);
  EXPECT_EQ(other.options.node.ingress.rate_bits_per_second, 1e10);
  EXPECT_EQ(other.options.ps->ingress.queue_bytes_max, 65536U);
  EXPECT_TRUE(other.options.tcp.has_value());
}

TEST(VirtualCluster, a_shrunk_model_takes_the_time_and_the_bytes_of_the_whole) {
  VirtualCluster cluster;
  cluster.jitter = 0.0;
  cluster.shrink = 1;
  const auto full = run(job_of(cluster));
  cluster.shrink = 64;
  const VirtualJob shrunk = job_of(cluster);
  EXPECT_EQ(shrunk.options.wire_bytes_per_byte, 64U);
  const auto small = run(shrunk);
  EXPECT_NEAR(small.virtual_seconds / full.virtual_seconds, 1.0, 0.02);
  const double bytes = static_cast<double>(small.totals.bytes_pushed) * 64;
  EXPECT_NEAR(bytes / static_cast<double>(full.totals.bytes_pushed), 1.0, 0.01);
}

TEST(VirtualCluster, stragglers_make_everybody_late) {
  VirtualCluster cluster;
  cluster.shrink = 256;
  cluster.bandwidth = "100gbit";
  const auto even = run(job_of(cluster));
  cluster.stragglers = 1;
  cluster.straggler_factor = 4.0;
  const auto late = run(job_of(cluster));
  EXPECT_GT(late.virtual_seconds, 2 * even.virtual_seconds);
}

TEST(VirtualCluster, mistakes_name_the_flag) {
  const auto expect = [](const std::function<void(VirtualCluster&)>& change, const char* words) {
    EXPECT_THAT(mistake(change), HasSubstr(words));
  };
  expect([](auto& cluster) { cluster.bandwidth = "0gbit"; }, "--bandwidth 0gbit: expected");
  expect([](auto& cluster) { cluster.latency = "-1us"; }, "--latency -1us: expected");
  expect([](auto& cluster) { cluster.buffer = "none"; }, "--buffer none: expected");
  expect([](auto& cluster) { cluster.workers = 5000; }, "--workers 5000");
  expect([](auto& cluster) { cluster.stragglers = 4; }, "--stragglers 4: there are 3 workers");
  expect([](auto& cluster) { cluster.straggler_factor = 0.5; }, "--straggler-factor 0.5");
  expect([](auto& cluster) { cluster.jitter = -1; }, "--jitter -1");
  expect([](auto& cluster) { cluster.train = true; }, "--train");
}

}  // namespace
}  // namespace stagger
