#include "ps/clock_offset.hpp"

#include <algorithm>
#include <cmath>

namespace stagger {

namespace {

constexpr std::size_t kept_max = 8;
constexpr std::uint32_t samples_per_kept = 8;
constexpr std::int64_t rounding_ns = 2;
// What a quartz clock's rate moves within a minute of warming up: no fit is better than that.
constexpr double skew_wander = 1e-6;
// 36 years; sums of four such times stay in 64 bits.
constexpr std::int64_t ticks_max = std::int64_t{1} << 60;

template <class Time>
std::int64_t ticks(Time time) {
  return time.time_since_epoch().count();
}

std::int64_t bounded(std::int64_t ticks) {
  return std::clamp(ticks, -ticks_max, ticks_max);
}

bool possible(std::int64_t ticks) {
  return ticks >= -ticks_max && ticks <= ticks_max;
}

double since(std::int64_t later, std::int64_t earlier) {
  return static_cast<double>(later - earlier);
}

}  // namespace

bool ClockOffset::Kept::contradicts(const Kept& other) const {
  const double apart = std::abs(since(offset, other.offset));
  const double drifted = skew_max * std::abs(since(at, other.at));
  return apart > static_cast<double>(error) + static_cast<double>(other.error) + drifted;
}

bool ClockOffset::add(const ClockSample& sample) {
  const std::int64_t asked = ticks(sample.asked);
  const std::int64_t heard = ticks(sample.heard);
  const std::int64_t answered = ticks(sample.answered);
  const std::int64_t received = ticks(sample.received);
  if (!possible(asked) || !possible(heard) || !possible(answered) || !possible(received)) {
    return false;
  }
  const std::int64_t round_trip = (received - asked) - (answered - heard);
  if (received < asked || answered < heard || round_trip < 0) return false;
  if (last_received_ && sample.received < *last_received_) return false;
  last_received_ = sample.received;

  // Beside half the round trip: the offset moved while the question was under way.
  const double moved = std::ceil(skew_max * since(received, asked));
  const Kept kept{
      .at = asked + (received - asked) / 2,
      .offset = ((heard - asked) + (answered - received)) / 2,
      .error = round_trip / 2 + static_cast<std::int64_t>(moved) + rounding_ns};
  const bool jumped =
      std::ranges::any_of(kept_, [&kept](const Kept& other) { return kept.contradicts(other); });
  if (jumped || kept_.empty()) {
    begin_with(kept);
    return true;
  }
  if (samples_of_last_ == samples_per_kept) {
    if (kept_.size() == kept_max) kept_.pop_front();
    kept_.push_back(kept);
    samples_of_last_ = 1;
  } else {
    ++samples_of_last_;
    if (kept.error <= kept_.back().error) kept_.back() = kept;
  }
  if (!fit()) begin_with(kept);
  return true;
}

void ClockOffset::begin_with(const Kept& sample) {
  kept_ = {sample};
  samples_of_last_ = 1;
  skew_ = 0.0;
  skew_error_ = skew_max;
}

/// False: no line passes what was kept.
bool ClockOffset::fit() {
  double least = -skew_max;
  double most = skew_max;
  for (std::size_t later = 1; later < kept_.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const double time = since(kept_[later].at, kept_[earlier].at);
      if (time <= 0) continue;
      const double moved = since(kept_[later].offset, kept_[earlier].offset);
      const double error =
          static_cast<double>(kept_[later].error) + static_cast<double>(kept_[earlier].error);
      least = std::max(least, (moved - error) / time);
      most = std::min(most, (moved + error) / time);
    }
  }
  if (least > most) return false;
  skew_ = (least + most) / 2;
  skew_error_ = std::min((most - least) / 2 + skew_wander, skew_max + std::abs(skew_));
  return true;
}

double ClockOffset::error_at(const Kept& kept, std::int64_t own) const {
  return static_cast<double>(kept.error) + skew_error_ * std::abs(since(own, kept.at));
}

std::int64_t ClockOffset::offset_at(const Kept& kept, std::int64_t own) const {
  return kept.offset + std::llround(skew_ * since(own, kept.at));
}

const ClockOffset::Kept& ClockOffset::best(std::int64_t own) const {
  return *std::ranges::min_element(
      kept_, {}, [this, own](const Kept& kept) { return error_at(kept, own); });
}

std::optional<ClockReading> ClockOffset::at(TimePoint own) const {
  if (kept_.empty()) return std::nullopt;
  const std::int64_t now = bounded(ticks(own));
  const Kept& kept = best(now);
  return ClockReading{
      .offset = Duration{offset_at(kept, now)},
      .uncertainty = Duration{static_cast<std::int64_t>(std::ceil(error_at(kept, now)))}};
}

std::optional<PsTime> ClockOffset::ps_time(TimePoint own) const {
  const auto reading = at(own);
  if (!reading) return std::nullopt;
  return PsTime{Duration{bounded(ticks(own))} + reading->offset};
}

std::optional<TimePoint> ClockOffset::own_time(PsTime time) const {
  if (kept_.empty()) return std::nullopt;
  const std::int64_t wanted = bounded(ticks(time));
  const Kept& kept = best(bounded(wanted - kept_.back().offset));
  // own + offset + skew * (own - at) = wanted
  const std::int64_t without_skew = wanted - kept.offset;
  const double gained = since(without_skew, kept.at) * (skew_ / (1.0 + skew_));
  return TimePoint{Duration{without_skew - std::llround(gained)}};
}

}  // namespace stagger
