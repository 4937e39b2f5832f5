#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {

class Counter;
class Gauge;
class Histogram;
template <class Metric>
class Family;

}  // namespace prometheus

/// Numbers for Prometheus. Which ones exist is said once, in observability/catalog.hpp.
///
/// Handles (Counter, Gauge, Histogram, Family) are small values that point into a Registry: they
/// may be copied freely, used from any thread, and must not outlive the Registry.
namespace stagger {

/// Only grows. Amounts that are negative or not finite are dropped: a counter must not go back.
class Counter {
 public:
  explicit Counter(prometheus::Counter& counter) : counter_(&counter) {}

  void add(double amount = 1.0);

  /// For totals that are counted elsewhere (TCP_INFO, a worker's report): adds what is missing, if
  /// anything. One writer.
  void raise_to(double total);

  double value() const;

 private:
  prometheus::Counter* counter_;
};

/// Goes up and down.
class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& gauge) : gauge_(&gauge) {}

  void set(double value);
  void add(double amount);
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

/// Distribution of durations. Negative values count as 0 and NaN not at all: a sum that can shrink
/// reads as a restart.
class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& histogram) : histogram_(&histogram) {}

  void observe(double seconds);

 private:
  prometheus::Histogram* histogram_;
};

/// What a Family of `Metric` is called in the library.
template <class Metric>
struct FamilyTraits;

template <>
struct FamilyTraits<Counter> {
  using Library = prometheus::Family<prometheus::Counter>;
};

template <>
struct FamilyTraits<Gauge> {
  using Library = prometheus::Family<prometheus::Gauge>;
};

template <>
struct FamilyTraits<Histogram> {
  using Library = prometheus::Family<prometheus::Histogram>;
};

/// One metric for each value of one label, made when first asked for. Label values come from
/// bounded sets (rank, group, an enumeration), never from a peer's text.
template <class Metric>
class Family {
 public:
  using Library = typename FamilyTraits<Metric>::Library;

  Family(Library& family, std::string label, std::vector<double> bounds)
      : family_(&family), label_(std::move(label)), bounds_(std::move(bounds)) {}

  Metric at(std::string_view label_value) const;

  template <std::integral Integer>
  Metric at(Integer label_value) const {
    return at(std::string_view(std::to_string(label_value)));
  }

  /// The series vanishes from the text; handles to it must not be used any more. Nothing happens if
  /// there is none.
  void remove(std::string_view label_value);

  template <std::integral Integer>
  void remove(Integer label_value) {
    remove(std::string_view(std::to_string(label_value)));
  }

 private:
  Library* family_;
  std::string label_;
  std::vector<double> bounds_;  ///< of histogram buckets; empty for the others
};

/// Name without the prefix "stagger_", and the sentence that explains it.
struct MetricName {
  MetricName(std::string_view text, std::string_view sentence) : name(text), help(sentence) {}

  std::string_view name;
  std::string_view help;
};

/// Owns every metric of a process and writes them as text.
///
/// For:     /metrics; filled through the structs of the catalog.
/// Owner:   main, or the test. Outlives all handles.
/// Thread:  any.
/// Failure: a name that Prometheus refuses, or that is taken by another type, is a bug: CHECK.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter counter(const MetricName& name);
  Gauge gauge(const MetricName& name);
  Histogram histogram(const MetricName& name, const std::vector<double>& bounds_seconds);

  Family<Counter> counters(const MetricName& name, std::string_view label);
  Family<Gauge> gauges(const MetricName& name, std::string_view label);
  Family<Histogram> histograms(
      const MetricName& name, std::string_view label, const std::vector<double>& bounds_seconds);

  /// Prometheus text format 0.0.4, sorted by name and label, so that equal states give equal text.
  std::string text() const;

  /// For the Content-Type header beside text().
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagger
