#include "observability/catalog.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace stagger {

namespace {

/// Every metric with a value, so that the text shows them all.
struct FullCatalog {
  Registry registry;
  WorkerMetrics workers{registry};
  ServerMetrics server{registry};

  FullCatalog() {
    workers.iterations_total.at(0).add(3.0);
    workers.samples_total.at(0).add(96.0);
    workers.loss.at(0).set(2.25);
    workers.iteration_seconds.at(0).observe(0.02);
    workers.compute_seconds_total.at(0).add(0.05);
    workers.exposed_seconds_total.at(0).add(0.01);
    workers.slot_lateness_seconds.at(0).observe(0.001);
    workers.slot_overrun_seconds.at(0).observe(0.0);
    workers.connection_round_trip_seconds.at(0).set(1e-4);
    workers.connection_retransmissions_total.at(0).raise_to(1.0);
    workers.clock_offset_seconds.at(0).set(-0.5);
    workers.clock_uncertainty_seconds.at(0).set(2e-5);
    workers.worker_up.at(0).set(1.0);
    workers.worker_straggling.at(0).set(0.0);
    workers.round_wait_seconds.at(0).observe(0.3);
    workers.nonfinite_chunks_total.at(0).add();
    server.push_bytes_total.at(1).add(4096.0);
    server.pull_bytes_total.at(1).add(4096.0);
    server.push_seconds.at(1).observe(0.004);
    server.pull_seconds.at(1).observe(0.004);
    server.refused(RefusalReason::stale);
  }
};

TEST(Catalog, names_all_metrics_that_the_contract_asks_for) {
  const FullCatalog catalog;
  const std::string text = catalog.registry.text();
  for (const std::string name :
       {"iterations_total",
        "samples_total",
        "loss",
        "iteration_seconds",
        "exposed_seconds_total",
        "push_bytes_total",
        "push_seconds",
        "pull_seconds",
        "slot_lateness_seconds",
        "slot_overrun_seconds",
        "slot_utilization_ratio",
        "pushes_in_flight",
        "pushes_in_flight_max",
        "ingress_bytes_total",
        "egress_bytes_total",
        "round_wait_seconds",
        "connection_round_trip_seconds",
        "connection_retransmissions_total",
        "period_iterations",
        "plan_version",
        "link_rate_bytes_per_second",
        "link_start_seconds",
        "clock_offset_seconds",
        "clock_uncertainty_seconds",
        "worker_up",
        "worker_straggling",
        "refused_frames_total",
        "rounds_total",
        "nonfinite_chunks_total"}) {
    EXPECT_NE(text.find("# TYPE stagger_" + name + " "), std::string::npos) << name;
  }
}

TEST(Catalog, a_lost_worker_is_down_and_leaves_no_stale_gauge) {
  FullCatalog catalog;
  catalog.workers.gone(0);
  const std::string text = catalog.registry.text();
  EXPECT_NE(text.find("stagger_worker_up{rank=\"0\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stagger_iterations_total{rank=\"0\"} 3\n"), std::string::npos) << text;
  for (const std::string name :
       {"loss",
        "connection_round_trip_seconds",
        "clock_offset_seconds",
        "clock_uncertainty_seconds",
        "worker_straggling"}) {
    EXPECT_EQ(text.find("stagger_" + name + "{"), std::string::npos) << name;
  }
}

TEST(Catalog, every_refusal_reason_has_its_own_series_from_the_start) {
  Registry registry;
  const ServerMetrics server(registry);
  std::istringstream lines(registry.text());
  std::set<std::string> series;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("stagger_refused_frames_total{")) series.insert(line);
  }
  EXPECT_EQ(series.size(), static_cast<std::size_t>(RefusalReason::overloaded) + 1);
  EXPECT_TRUE(series.contains("stagger_refused_frames_total{reason=\"stale\"} 0"));
}

/// Feeds `text` to "promtool check metrics"; its exit status.
int promtool_status(const std::string& text) {
  FILE* const pipe = popen("promtool check metrics 2>&1", "w");
  if (pipe == nullptr) return -1;
  std::fwrite(text.data(), 1, text.size(), pipe);
  return pclose(pipe);
}

TEST(Catalog, promtool_finds_nothing_to_complain_about) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {  // NOLINT(concurrency-mt-unsafe)
    GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  }
  const FullCatalog catalog;
  EXPECT_EQ(promtool_status(catalog.registry.text()), 0);
  EXPECT_NE(promtool_status("# TYPE stagger_bad counter\nstagger_bad 1\n"), 0)
      << "promtool accepts everything, so its silence says nothing";
}

}  // namespace

}  // namespace stagger
