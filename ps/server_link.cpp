#include <algorithm>

#include <fmt/format.h>

#include "observability/check.hpp"
#include "ps/link_probe.hpp"
#include "ps/server.hpp"
#include "ps/session.hpp"

// The link is measured before the first plan, where something goes by it and nobody has said what
// it is: one worker at a time, in the order of ranks, by the PS's clock alone.
namespace stagger {

namespace {

// All workers together; on a slow link each takes longer than its share.
constexpr Duration probing_time_max = 750ms;

}  // namespace

void Server::use_link(const LinkCost& link) {
  link_ = KnownLink{.cost = link, .measured = !options_.link.has_value()};
  options_.grouping.link = shared_by(link, membership_.world());
  const double guard = options_.slots.link ? options_.slots.link->guard : options_.slot_guard;
  options_.slots.link = MeasuredLink{.cost = link, .guard = guard};
  show_link(link);
}

void Server::show_link(const LinkCost& link) {
  metrics_.link_rate_bytes_per_second.set(rate_bits_per_second(link) / 8);
  metrics_.link_start_seconds.set(to_seconds(link.start));
}

void Server::probe_answered(std::uint32_t number) {
  if (number != probe_.number) return;  // given up on meanwhile
  probe_.answered_at = host_.clock.now();
  changed_.set();
}

/// ENSURES a link that is known, and all members, unless a stop is wanted.
Task<void> Server::await_link() {
  while (!stop_wanted_) {
    if (!link_) co_await measure_link();
    const bool complete = membership_.all_joined() && profiles_.size() == membership_.world();
    if (stop_wanted_ || (link_ && complete)) co_return;
    if (!link_ && complete) {
      throw ServerFailure(
          ServerFailure::Kind::link_unknown,
          "the link could not be measured, no worker has answered in time; give it in the config: "
          "link.rate_bits_per_second and link.start_us");
    }
    co_await await_members();  // one has gone meanwhile
  }
}

Task<void> Server::measure_link() {
  const TimePoint began = host_.clock.now();
  std::optional<LinkCost> slowest;
  std::uint32_t measured = 0;
  for (const WorkerId worker : membership_.in_state(Membership::State::joined)) {
    const bool late = host_.clock.now() - began >= options_.timeouts.worker;
    if (stop_wanted_ || (late && slowest)) break;
    const auto cost = co_await probe_worker(worker);
    if (!cost) {
      host_.log.warning("link_not_measured", {{"rank", worker.value()}});
      continue;
    }
    ++measured;
    if (!slowest || slowest->seconds_per_byte < cost->seconds_per_byte) slowest = cost;
  }
  if (!slowest) co_return;
  use_link(*slowest);
  host_.log.info(
      "link_measured",
      {{"rate_bits_per_second", rate_bits_per_second(*slowest)},
       {"start_us", to_microseconds(slowest->start)},
       {"workers", measured},
       {"seconds", to_seconds(host_.clock.now() - began)}});
}

/// None: it did not answer in time, or has gone.
Task<std::optional<LinkCost>> Server::probe_worker(WorkerId worker) {
  LinkProbe::Options options;
  options.bytes_max = std::min<std::uint64_t>(options.bytes_max, options_.chunk_bytes);
  options.time_max = probing_time_max / membership_.world();
  LinkProbe probe(options);
  while (const auto bytes = probe.next()) {
    const auto time = co_await time_probe(worker, *bytes);
    if (!time) co_return std::nullopt;
    probe.answered(*time);
  }
  co_return probe.cost();
}

Task<std::optional<Duration>> Server::time_probe(WorkerId worker, std::uint64_t bytes) {
  const auto session = sessions_.find(worker);
  if (session == sessions_.end()) co_return std::nullopt;
  const Session* const asked = session->second;
  const TimePoint asked_at = host_.clock.now();
  const TimePoint limit = asked_at + options_.timeouts.worker;
  probe_ = {.number = probe_.number + 1, .answered_at = std::nullopt};
  session->second->ask_probe({.number = probe_.number, .bytes = bytes});
  while (!probe_.answered_at && !stop_wanted_ && host_.clock.now() < limit) {
    const auto now = sessions_.find(worker);
    if (now == sessions_.end() || now->second != asked) co_return std::nullopt;
    changed_.reset();
    co_await changed_.wait_until(host_.clock, limit);
  }
  if (!probe_.answered_at) co_return std::nullopt;
  co_return *probe_.answered_at - asked_at;
}

}  // namespace stagger
