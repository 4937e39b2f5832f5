#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"
#include "tests/support/wrapped_backend.hpp"

namespace stagger {
namespace {

using testing::HasSubstr;

/// Whoever is lost may have a turn, ask for one or wait for a slot.
class Faults : public testing::TestWithParam<Admission> {
 protected:
  static Config fault_config() {
    Config config = synthetic_config();
    config.job.iterations = 60;
    config.slots.admission = GetParam();
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Admissions,
    Faults,
    testing::Values(Admission::slots, Admission::grants, Admission::slots_grants),
    [](const auto& tried) {
      return std::string(tried.param == Admission::slots_grants ? "both" : to_string(tried.param));
    });

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

bool finite(const Arena& values) {
  for (const float value : values.all()) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

/// From its tenth batch on, one gradient is not a number.
class NanBackend final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;

  void backward(LayerRange layers) override {
    WrappedBackend::backward(layers);
    if (loads_ >= 10) gradients_->all().front() = std::numeric_limits<float>::quiet_NaN();
  }
};

class ThrowingBackend final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;

  void backward(LayerRange layers) override {
    if (loads_ >= 10) throw std::runtime_error("the tenth batch cannot be digested");
    WrappedBackend::backward(layers);
  }
};

template <class Wrapper>
SimCluster::Options wrap_rank(std::uint32_t rank) {
  SimCluster::Options options;
  options.wrap = [rank](std::uint32_t candidate, std::unique_ptr<Backend> inner) {
    if (candidate == rank) return std::unique_ptr<Backend>(new Wrapper(std::move(inner)));
    return inner;
  };
  return options;
}

TEST_P(Faults, a_crashed_worker_leaves_the_others_to_finish) {
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    Config config = fault_config();
    config.sync.rule = rule;
    SimCluster cluster(config, data());
    cluster.start_all();
    cluster.run_until_iteration(1, 20);
    cluster.world().crash("worker1");
    cluster.run_to_end();
    EXPECT_EQ(cluster.state(1), Membership::State::gone);
    EXPECT_EQ(cluster.state(0), Membership::State::left);
    EXPECT_EQ(cluster.state(2), Membership::State::left);
    EXPECT_EQ(cluster.server().status().iteration, Iteration(60));
    EXPECT_TRUE(finite(cluster.server().center()));
    EXPECT_GT(cluster.metrics().rounds_incomplete_total.value(), 0.0);
    EXPECT_EQ(cluster.server().status().rounds_closed, 60U + 3U);
    EXPECT_THAT(cluster.log(), HasSubstr("worker_gone rank=1"));
    EXPECT_TRUE(cluster.end_of_worker(1).has_value());
    EXPECT_EQ(cluster.end_of_worker(0), std::nullopt);
  }
}

TEST_P(Faults, a_wait_for_a_lost_worker_names_rank_group_and_iteration) {
  SimCluster cluster(fault_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(2, 20);
  cluster.world().crash("worker2");
  cluster.run_to_end();
  EXPECT_THAT(cluster.log(), HasSubstr("round_waits group="));
  EXPECT_THAT(cluster.log(), HasSubstr("missing_ranks=2"));
}

TEST_P(Faults, a_silent_worker_is_gone_after_its_limit_and_the_others_finish) {
  SimCluster cluster(fault_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(0, 20);
  cluster.world().set_clogged("worker0", true);
  cluster.run_for(cluster.config().timeouts.worker / 2);
  EXPECT_EQ(cluster.state(0), Membership::State::active);
  cluster.run_for(cluster.config().timeouts.worker);
  EXPECT_EQ(cluster.state(0), Membership::State::gone);
  cluster.world().set_clogged("worker0", false);
  cluster.run_to_end();
  EXPECT_EQ(cluster.state(1), Membership::State::left);
  EXPECT_EQ(cluster.state(2), Membership::State::left);
  EXPECT_TRUE(finite(cluster.server().center()));
  EXPECT_TRUE(cluster.end_of_worker(0).has_value());
}

TEST_P(Faults, a_silence_below_the_limit_changes_nothing) {
  SimCluster quiet(fault_config(), data());
  quiet.start_all();
  quiet.run_to_end();

  SimCluster cluster(fault_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(0, 20);
  cluster.world().set_clogged("worker0", true);
  cluster.run_for(cluster.config().timeouts.worker / 2);
  cluster.world().set_clogged("worker0", false);
  cluster.run_to_end();
  EXPECT_EQ(cluster.state(0), Membership::State::left);
  EXPECT_EQ(cluster.metrics().rounds_incomplete_total.value(), 0.0);
  const Arena one = quiet.server().center();
  const Arena other = cluster.server().center();
  EXPECT_TRUE(std::equal(one.all().begin(), one.all().end(), other.all().begin()));
}

TEST_P(Faults, a_worker_that_comes_back_takes_its_rank_and_trains_to_the_end) {
  Config config = fault_config();
  config.job.iterations = 200;
  SimCluster cluster(config, data());
  cluster.start_all();
  cluster.run_until_iteration(1, 20);
  cluster.world().crash("worker1");
  cluster.run_for(1s);
  EXPECT_TRUE(cluster.end_of_worker(1).has_value());
  cluster.start_worker(1);
  cluster.run_until_iteration(1, 30);
  EXPECT_EQ(cluster.state(1), Membership::State::active);
  EXPECT_GT(cluster.server().status().workers[1].member.joins_at, Iteration(20));
  cluster.run_to_end();
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.state(rank), Membership::State::left);
    EXPECT_EQ(cluster.end_of_worker(rank), std::nullopt);
  }
  EXPECT_TRUE(finite(cluster.server().center()));
}

TEST_P(Faults, a_worker_that_leaves_early_says_so_and_the_others_go_on) {
  SimCluster cluster(fault_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(1, 20);
  cluster.worker(1).leave("out of data");
  cluster.run_to_end();
  EXPECT_EQ(cluster.state(1), Membership::State::left);
  EXPECT_EQ(cluster.server().status().workers[1].member.reason, "out of data");
  EXPECT_EQ(cluster.end_of_worker(1), std::nullopt);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(60));
  EXPECT_EQ(cluster.server().status().rounds_closed, 60U + 3U);
}

TEST_P(Faults, the_run_fails_when_every_worker_is_lost) {
  SimCluster cluster(fault_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(0, 10);
  for (const char* node : {"worker0", "worker1", "worker2"})
    cluster.world().crash(node);
  try {
    cluster.run_to_end();
    FAIL() << "ended well without workers";
  } catch (const ServerFailure& failure) {
    EXPECT_EQ(failure.kind, ServerFailure::Kind::workers_lost);
  }
}

TEST_P(Faults, members_that_never_come_are_named) {
  SimCluster cluster(fault_config(), data());
  cluster.start_server();
  cluster.start_worker(1);
  try {
    cluster.run_to_end();
    FAIL() << "began without all members";
  } catch (const ServerFailure& failure) {
    EXPECT_EQ(failure.kind, ServerFailure::Kind::members_missing);
    EXPECT_THAT(failure.what(), HasSubstr("worker/0, worker/2"));
  }
  EXPECT_THAT(cluster.log(), HasSubstr("missing=\"worker/0, worker/2\""));
  EXPECT_TRUE(cluster.end_of_worker(1).has_value());
}

TEST_P(Faults, workers_may_start_long_before_their_server) {
  SimCluster cluster(fault_config(), data());
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    cluster.start_worker(rank);
  cluster.run_for(20s);
  cluster.start_server();
  cluster.run_to_end();
  EXPECT_EQ(cluster.server().status().iteration, Iteration(60));
}

TEST_P(Faults, a_server_that_is_not_there_is_named_by_its_address) {
  SimCluster cluster(fault_config(), data());
  cluster.start_worker(0);
  const auto failure = cluster.end_of_worker(0);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(*failure, HasSubstr("ps:7000"));
  EXPECT_THAT(*failure, HasSubstr("timeouts.join_s"));
}

TEST_P(Faults, values_that_are_no_numbers_are_skipped_and_their_sender_named) {
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    Config config = fault_config();
    config.sync.rule = rule;
    SimCluster cluster(config, data(), wrap_rank<NanBackend>(1));
    cluster.start_all();
    cluster.run_to_end();
    EXPECT_TRUE(finite(cluster.server().center()));
    EXPECT_GT(cluster.refused(RefusalReason::nonfinite), 0U);
    EXPECT_GT(cluster.worker_metrics().nonfinite_chunks_total.at(1).value(), 0.0);
    EXPECT_EQ(cluster.worker_metrics().nonfinite_chunks_total.at(0).value(), 0.0);
    EXPECT_THAT(cluster.log(), HasSubstr("nonfinite_push_skipped rank=1 group="));
    EXPECT_EQ(cluster.server().status().iteration, Iteration(60));
  }
}

TEST_P(Faults, an_exception_in_one_worker_ends_it_alone_with_its_text) {
  SimCluster cluster(fault_config(), data(), wrap_rank<ThrowingBackend>(2));
  cluster.start_all();
  cluster.run_to_end();
  const auto failure = cluster.end_of_worker(2);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(*failure, HasSubstr("the tenth batch cannot be digested"));
  EXPECT_EQ(cluster.state(2), Membership::State::gone);
  EXPECT_EQ(cluster.end_of_worker(0), std::nullopt);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(60));
}

}  // namespace
}  // namespace stagger
