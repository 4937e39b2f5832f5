#include "ps/rhythm.hpp"

#include <algorithm>

namespace stagger {

namespace {

// A rhythm says nothing of an iteration this far on; so many hours stay a Duration.
constexpr std::uint64_t iterations_max = 1U << 16U;
constexpr std::uint64_t iteration_largest = std::uint64_t{1} << 62;
// Two plans ahead of the one that is due, with one between them for news that come late.
constexpr std::size_t rhythms_max = 4;
// What is published reaches all before it is used, where an iteration takes longer than the way.
constexpr std::uint64_t iterations_ahead = 2;

Duration times(Duration iteration_time, std::uint64_t iterations) {
  return iteration_time * static_cast<Duration::rep>(iterations);
}

}  // namespace

void RhythmFinder::report(WorkerId worker, const BackwardStart& start, PsTime now) {
  if (start.iteration.value() == 0 || start.iteration.value() > iteration_largest ||
      start.at > now + rhythm_time_max || start.at < now - rhythm_time_max) {
    return;
  }
  const auto [found, first] = workers_.try_emplace(worker, Reported{.last = start});
  if (first) return;
  Reported& known = found->second;
  if (start.iteration == known.last.iteration) return;
  const bool onwards = start.iteration > known.last.iteration && start.at > known.last.at;
  if (!onwards) {
    known = {.last = start};
    return;
  }
  known.add(start);
}

/// REQUIRES that it is later than the last.
void RhythmFinder::Reported::add(const BackwardStart& start) {
  const std::uint64_t passed = start.iteration.value() - last.iteration.value();
  const Duration took = start.at - last.at;
  last = start;
  if (passed > iterations_max || took > rhythm_time_max) {
    iteration_time = late = Duration{0};
    return;
  }
  const Duration mean = took / static_cast<Duration::rep>(passed);
  if (iteration_time == Duration{0}) {
    iteration_time = mean;
    return;
  }
  late = std::min(std::max(took - times(iteration_time, passed), late * 9 / 10), iteration_time);
  iteration_time += (mean - iteration_time) / 4;
}

std::optional<Rhythm> RhythmFinder::next(PsTime now) const {
  std::uint64_t furthest = 0;
  for (const auto& [worker, known] : workers_) {
    if (known.iteration_time <= Duration{0}) continue;
    const auto passed = static_cast<std::uint64_t>(
        std::max(now - known.last.at, Duration{0}) / known.iteration_time);
    furthest = std::max(furthest, known.last.iteration.value() + std::min(passed, iterations_max));
  }
  std::optional<Rhythm> rhythm;
  for (const auto& [worker, known] : workers_) {
    if (known.iteration_time <= Duration{0}) continue;
    const std::uint64_t ahead = furthest + iterations_ahead - known.last.iteration.value();
    if (ahead > iterations_max) continue;  // it stands still, or is not where it says
    const PsTime start = known.last.at + times(known.iteration_time, ahead) + known.late;
    if (!rhythm) {
      rhythm = Rhythm{.iteration = Iteration(furthest + iterations_ahead), .start = start};
    }
    rhythm->start = std::max(rhythm->start, start);
    rhythm->iteration_time = std::max(rhythm->iteration_time, known.iteration_time);
  }
  return rhythm;
}

void HeardRhythms::heard(const Rhythm& rhythm) {
  while (!rhythms_.empty() && rhythms_.back().iteration >= rhythm.iteration)
    rhythms_.pop_back();
  if (rhythms_.size() == rhythms_max) rhythms_.pop_front();
  rhythms_.push_back(rhythm);
}

std::optional<Rhythm> HeardRhythms::at(Iteration iteration) const {
  const auto after = std::ranges::upper_bound(rhythms_, iteration, {}, &Rhythm::iteration);
  if (after == rhythms_.begin()) return std::nullopt;
  const Rhythm& rhythm = *std::prev(after);
  const std::uint64_t passed = iteration.value() - rhythm.iteration.value();
  if (passed > iterations_max) return std::nullopt;
  return Rhythm{
      .iteration = iteration,
      .start = rhythm.start + times(rhythm.iteration_time, passed),
      .iteration_time = rhythm.iteration_time};
}

}  // namespace stagger
