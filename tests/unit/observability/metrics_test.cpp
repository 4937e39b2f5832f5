#include "observability/metrics.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace stagger {

namespace {

TEST(Metrics, text_holds_help_type_and_value) {
  Registry registry;
  Counter rounds = registry.counter({"rounds_total", "Rounds that have closed."});
  rounds.add();
  rounds.add(2.0);
  EXPECT_EQ(
      registry.text(),
      "# HELP stagger_rounds_total Rounds that have closed.\n"
      "# TYPE stagger_rounds_total counter\n"
      "stagger_rounds_total 3\n");
}

TEST(Metrics, text_is_sorted_by_name_and_then_by_rank_as_a_number) {
  Registry registry;
  const Family<Gauge> loss = registry.gauges({"loss", "Loss."}, "rank");
  Gauge alpha = registry.gauge({"alpha", "Alpha."});
  alpha.set(0.5);
  for (const int rank : {10, 2, 1})
    loss.at(rank).set(rank);
  const std::string text = registry.text();
  const auto place = [&text](const std::string& part) {
    return text.find(part);
  };
  EXPECT_LT(place("stagger_alpha 0.5"), place("stagger_loss{rank=\"1\"} 1"));
  EXPECT_LT(place("stagger_loss{rank=\"1\"} 1"), place("stagger_loss{rank=\"2\"} 2"));
  EXPECT_LT(place("stagger_loss{rank=\"2\"} 2"), place("stagger_loss{rank=\"10\"} 10"));
  EXPECT_NE(place("stagger_loss{rank=\"10\"} 10"), std::string::npos);
}

TEST(Metrics, a_counter_never_goes_back) {
  Registry registry;
  Counter counter = registry.counter({"bytes_total", "Bytes."});
  counter.add(5.0);
  counter.add(-1.0);
  counter.add(std::numeric_limits<double>::quiet_NaN());
  counter.add(std::numeric_limits<double>::infinity());
  EXPECT_EQ(counter.value(), 5.0);
}

TEST(Metrics, raise_to_follows_a_total_that_is_counted_elsewhere) {
  Registry registry;
  Counter counter = registry.counter({"retransmissions_total", "Retransmissions."});
  counter.raise_to(3.0);
  counter.raise_to(7.0);
  counter.raise_to(2.0);
  EXPECT_EQ(counter.value(), 7.0);
}

TEST(Metrics, a_histogram_takes_no_negative_values) {
  Registry registry;
  Histogram lateness = registry.histogram({"lateness_seconds", "Lateness."}, {0.1, 1.0});
  lateness.observe(-5.0);
  lateness.observe(0.5);
  lateness.observe(std::numeric_limits<double>::quiet_NaN());
  const std::string text = registry.text();
  EXPECT_NE(text.find("stagger_lateness_seconds_count 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stagger_lateness_seconds_sum 0.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stagger_lateness_seconds_bucket{le=\"0.1\"} 1\n"), std::string::npos)
      << text;
}

TEST(Metrics, the_same_label_value_gives_the_same_metric) {
  Registry registry;
  const Family<Counter> family = registry.counters({"pushes_total", "Pushes."}, "group");
  family.at(4).add(1.0);
  family.at("4").add(1.0);
  EXPECT_EQ(family.at(4).value(), 2.0);
}

TEST(Metrics, a_removed_series_vanishes_and_starts_anew) {
  Registry registry;
  Family<Gauge> loss = registry.gauges({"loss", "Loss."}, "rank");
  loss.at(1).set(2.5);
  loss.at(2).set(3.5);
  loss.remove(1);
  loss.remove(7);
  EXPECT_EQ(registry.text().find("rank=\"1\""), std::string::npos);
  EXPECT_NE(registry.text().find("rank=\"2\""), std::string::npos);
  EXPECT_EQ(loss.at(1).value(), 0.0);
}

TEST(MetricsDeathTest, a_name_that_is_taken_is_a_bug) {
  Registry registry;
  const Counter first = registry.counter({"rounds_total", "Rounds."});
  EXPECT_EQ(first.value(), 0.0);
  EXPECT_DEATH(registry.counter({"rounds_total", "Rounds."}), "metric refused rounds_total");
}

TEST(MetricsDeathTest, a_name_that_prometheus_refuses_is_a_bug) {
  Registry registry;
  EXPECT_DEATH(registry.gauge({"per-cent", "Bad."}), "metric refused per-cent");
}

}  // namespace

}  // namespace stagger
