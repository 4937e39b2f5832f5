#include "observability/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

template <class Builder>
auto& register_family(Builder builder, const MetricName& name, prometheus::Registry& registry) {
  CHECK(!name.help.empty(), "metric without help", name.name);
  try {
    return builder.Name("stagger_" + std::string(name.name))
        .Help(std::string(name.help))
        .Register(registry);
  } catch (const std::exception& failure) {
    CHECK(false, "metric refused", name.name, failure.what());
    throw;
  }
}

bool label_less(const prometheus::ClientMetric& left, const prometheus::ClientMetric& right) {
  const auto key = [](const prometheus::ClientMetric& metric) {
    const std::string text = metric.label.empty() ? std::string() : metric.label.front().value;
    // Ranks and groups in numeric order: shorter numbers first.
    return std::pair(text.size(), text);
  };
  return key(left) < key(right);
}

}  // namespace

void Counter::add(double amount) {
  if (std::isfinite(amount) && amount > 0.0) counter_->Increment(amount);
}

void Counter::raise_to(double total) {
  add(total - counter_->Value());
}

double Counter::value() const {
  return counter_->Value();
}

void Gauge::set(double value) {
  gauge_->Set(value);
}

void Gauge::add(double amount) {
  gauge_->Increment(amount);
}

double Gauge::value() const {
  return gauge_->Value();
}

void Histogram::observe(double seconds) {
  if (!std::isnan(seconds)) histogram_->Observe(std::max(seconds, 0.0));
}

template <class Metric>
Metric Family<Metric>::at(std::string_view label_value) const {
  const prometheus::Labels labels{{label_, std::string(label_value)}};
  if constexpr (std::same_as<Metric, Histogram>) {
    return Metric(family_->Add(labels, prometheus::Histogram::BucketBoundaries(bounds_)));
  } else {
    return Metric(family_->Add(labels));
  }
}

template <class Metric>
void Family<Metric>::remove(std::string_view label_value) {
  const prometheus::Labels labels{{label_, std::string(label_value)}};
  if (!family_->Has(labels)) return;
  if constexpr (std::same_as<Metric, Histogram>) {
    family_->Remove(&family_->Add(labels, prometheus::Histogram::BucketBoundaries(bounds_)));
  } else {
    family_->Remove(&family_->Add(labels));
  }
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

struct Registry::Impl {
  prometheus::Registry library{prometheus::Registry::InsertBehavior::Throw};
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}

Registry::~Registry() = default;

Counter Registry::counter(const MetricName& name) {
  return Counter(register_family(prometheus::BuildCounter(), name, impl_->library).Add({}));
}

Gauge Registry::gauge(const MetricName& name) {
  return Gauge(register_family(prometheus::BuildGauge(), name, impl_->library).Add({}));
}

Histogram Registry::histogram(const MetricName& name, const std::vector<double>& bounds_seconds) {
  return Histogram(register_family(prometheus::BuildHistogram(), name, impl_->library)
                       .Add({}, prometheus::Histogram::BucketBoundaries(bounds_seconds)));
}

Family<Counter> Registry::counters(const MetricName& name, std::string_view label) {
  return {
      register_family(prometheus::BuildCounter(), name, impl_->library), std::string(label), {}};
}

Family<Gauge> Registry::gauges(const MetricName& name, std::string_view label) {
  return {register_family(prometheus::BuildGauge(), name, impl_->library), std::string(label), {}};
}

Family<Histogram> Registry::histograms(
    const MetricName& name, std::string_view label, const std::vector<double>& bounds_seconds) {
  return {
      register_family(prometheus::BuildHistogram(), name, impl_->library),
      std::string(label),
      bounds_seconds};
}

std::string Registry::text() const {
  std::vector<prometheus::MetricFamily> families = impl_->library.Collect();
  std::sort(families.begin(), families.end(), [](const auto& left, const auto& right) {
    return left.name < right.name;
  });
  for (prometheus::MetricFamily& family : families) {
    std::sort(family.metric.begin(), family.metric.end(), label_less);
  }
  const prometheus::TextSerializer serializer;
  return static_cast<const prometheus::Serializer&>(serializer).Serialize(families);
}

}  // namespace stagger
