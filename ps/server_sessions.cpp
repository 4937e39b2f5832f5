#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "observability/check.hpp"
#include "ps/server.hpp"
#include "ps/server_drift.hpp"
#include "ps/session.hpp"

// What sessions tell the server and ask of it.
namespace stagger {

namespace {

std::string shape_text(const ParameterInfo& parameter) {
  std::string text = parameter.name + " (";
  for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : "x", parameter.shape[i]);
  }
  return text + ")";
}

/// The first parameter in which two models differ, both sides named.
std::string first_difference(
    const std::vector<ParameterInfo>& ours, const std::vector<ParameterInfo>& theirs) {
  const std::size_t count = std::max(ours.size(), theirs.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string our_text = i < ours.size() ? shape_text(ours[i]) : "nothing";
    const std::string their_text = i < theirs.size() ? shape_text(theirs[i]) : "nothing";
    if (our_text == their_text) continue;
    return fmt::format(
        "parameter {}: the PS has {}, the worker {} ({} and {} parameters)",
        i,
        our_text,
        their_text,
        ours.size(),
        theirs.size());
  }
  return "no difference in names and shapes, but in the hash";
}

/// The first line in which two settings texts differ.
std::string first_different_line(std::string_view ours, std::string_view theirs) {
  while (!ours.empty() || !theirs.empty()) {
    const auto our_line = ours.substr(0, ours.find('\n'));
    const auto their_line = theirs.substr(0, theirs.find('\n'));
    if (our_line != their_line) {
      return fmt::format("the PS has \"{}\", the worker \"{}\"", our_line, their_line);
    }
    ours.remove_prefix(std::min(ours.size(), our_line.size() + 1));
    theirs.remove_prefix(std::min(theirs.size(), their_line.size() + 1));
  }
  return "no line differs";
}

/// What no sketch could have sent does not count.
void merge_counts(QuantileSketch& total, const std::vector<std::uint64_t>& counts) {
  if (const auto sketch = QuantileSketch::from_counts(counts)) total.merge(*sketch);
}

Error refusal(const std::string& why) {
  return {.code = Errc::refused, .detail = why};
}

}  // namespace

Result<WorkerId> Server::admit(const Hello& hello, const std::string& address) {
  if (hello.protocol != protocol_version) {
    return refusal(
        fmt::format("protocol version {}, the PS speaks {}", hello.protocol, protocol_version));
  }
  if (hello.job != options_.job) {
    return refusal(fmt::format("job \"{}\", the PS serves \"{}\"", hello.job, options_.job));
  }
  if (hello.world != membership_.world()) {
    return refusal(fmt::format(
        "cluster.workers is {} at the worker and {} at the PS", hello.world, membership_.world()));
  }
  if (hello.schema_hash != options_.schema_hash) {
    return refusal(
        "another model; " + first_difference(initial_.layout().parameters(), hello.parameters));
  }
  if (hello.settings != options_.settings) {
    return refusal("other settings; " + first_different_line(options_.settings, hello.settings));
  }
  auto worker = membership_.join(hello.rank, address, host_.clock.now());
  if (!worker) return worker;
  if (aggregator_) {
    aggregator_->skip_absent(*worker);  // a former self of this rank is over
    agreement_.drop(*worker);
    aggregator_moved();
    forget_turns(*worker);
  }
  host_.log.info("worker_joined", {{"rank", worker->value()}, {"address", address}});
  changed_.set();
  return worker;
}

void Server::attach(WorkerId worker, Session& session) {
  sessions_[worker] = &session;
}

void Server::detach(WorkerId worker, Session& session, const std::string& reason) {
  const auto found = sessions_.find(worker);
  if (found == sessions_.end() || found->second != &session) return;  // a former self
  sessions_.erase(found);
  if (aggregator_) aggregator_->forget(worker);
  aggregator_moved();  // it may have been the one to shed its chunk: another must be found
  forget_turns(worker);
  const auto before = membership_.member(worker).state;
  membership_.disconnected(worker, incarnation(worker), reason, host_.clock.now());
  if (before == Membership::State::joined) profiles_.erase(worker);
  if (before == Membership::State::active) {
    worker_metrics_.worker_up.at(worker.value()).set(0.0);
    host_.log.warning(
        "worker_disconnected",
        {{"rank", worker.value()},
         {"reason", reason},
         {"last_iteration", progress_[worker].iteration.value()}});
  }
  changed_.set();
}

void Server::profiled(WorkerId worker, const Profile& profile) {
  const auto possible = [](Duration duration) {
    return duration >= Duration{0} && duration <= 3600s;
  };
  if (started() || profile.forward.size() != options_.layers.size() ||
      profile.backward.size() != options_.layers.size() ||
      !std::all_of(profile.forward.begin(), profile.forward.end(), possible) ||
      !std::all_of(profile.backward.begin(), profile.backward.end(), possible)) {
    sessions_.at(worker)->post(Refuse{fmt::format(
        "a profile of {} layers with times from 0 to an hour is expected, once, before the start",
        options_.layers.size())});
    sessions_.at(worker)->finish();
    return;
  }
  profiles_[worker] = profile;
  changed_.set();
}

void Server::heard(WorkerId worker, Incarnation incarnation) {
  membership_.heard(worker, incarnation, host_.clock.now());
}

void Server::progressed(WorkerId worker, const Heartbeat& progress) {
  progress_[worker] = progress;
  if (drift_) {
    drift_->compute.heard(worker, progress.iteration, progress.compute);
    drift_->moved.set();
  }
  const auto rank = worker.value();
  worker_metrics_.iterations_total.at(rank).raise_to(
      static_cast<double>(progress.iteration.value()));
  worker_metrics_.samples_total.at(rank).raise_to(static_cast<double>(progress.samples));
  worker_metrics_.loss.at(rank).set(progress.loss);
  worker_metrics_.exposed_seconds_total.at(rank).raise_to(to_seconds(progress.exposed));
  worker_metrics_.compute_seconds_total.at(rank).raise_to(to_seconds(progress.compute));
  for (const Duration duration : progress.iterations) {
    worker_metrics_.iteration_seconds.at(rank).observe(to_seconds(duration));
  }
  for (const Duration duration : progress.lateness) {
    worker_metrics_.slot_lateness_seconds.at(rank).observe(to_seconds(duration));
  }
  for (const Duration duration : progress.overrun) {
    worker_metrics_.slot_overrun_seconds.at(rank).observe(to_seconds(duration));
  }
  worker_metrics_.connection_round_trip_seconds.at(rank).set(to_seconds(progress.round_trip));
  worker_metrics_.connection_retransmissions_total.at(rank).raise_to(
      static_cast<double>(progress.retransmissions));
  if (progress.clock) {
    worker_metrics_.clock_offset_seconds.at(rank).set(to_seconds(progress.clock->offset));
    worker_metrics_.clock_uncertainty_seconds.at(rank).set(to_seconds(progress.clock->uncertainty));
    totals_.clock_uncertainty = std::max(totals_.clock_uncertainty, progress.clock->uncertainty);
  }
  if (progress.backward && progress.backward->iteration <= options_.last_iteration) {
    rhythm_.report(worker, *progress.backward, as_ps_time(host_.clock.now()));
  }
}

void Server::promised(WorkerId worker, const Promise& promise) {
  agreement_.promise(promise.agreement, worker, promise.hold);
  changed_.set();
}

void Server::farewell(WorkerId worker, const Farewell& farewell) {
  progressed(worker, farewell.progress);
  totals_.bytes_pushed += farewell.bytes_pushed;
  totals_.bytes_pulled += farewell.bytes_pulled;
  totals_.exposed_seconds += to_seconds(farewell.progress.exposed);
  totals_.compute_seconds += to_seconds(farewell.progress.compute);
  merge_counts(totals_.lateness, farewell.lateness_counts);
  merge_counts(totals_.push, farewell.push_counts);
  merge_counts(totals_.ready_to_done, farewell.ready_to_done_counts);
  merge_counts(totals_.iteration, farewell.iteration_counts);
  totals_.iteration_seconds += to_seconds(std::max(farewell.iterations, Duration{0}));
  membership_.leave(worker, farewell.reason);
  worker_metrics_.gone(worker.value());
  agreement_.drop(worker);
  if (aggregator_) aggregator_->skip_absent(worker);
  aggregator_moved();
  forget_turns(worker);
  host_.log.info(
      "worker_left",
      {{"rank", worker.value()},
       {"iteration", farewell.progress.iteration.value()},
       {"reason", farewell.reason}});
  changed_.set();
}

void Server::push_began(WorkerId worker, RoundId round, bool waited) {
  const TimePoint now = host_.clock.now();
  if (drift_) drift_->link.began(worker, round, waited, now);
  in_flight_.push_back({worker, round, now});
  in_flight_max_ = std::max(in_flight_max_, static_cast<std::uint32_t>(in_flight_.size()));
  metrics_.pushes_in_flight.set(static_cast<double>(in_flight_.size()));
  metrics_.pushes_in_flight_max.set(in_flight_max_);
  round_opened_at_.try_emplace(round.group, now);
  push_turns_.began({.worker = worker, .round = round, .chunk = 0}, now);
  turns_moved_.set();
}

void Server::push_ended(WorkerId worker, RoundId round) {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const InFlight& push) {
    return push.worker == worker && push.round == round;
  });
  if (drift_) drift_->link.ended(worker, round);
  if (found == in_flight_.end()) return;
  metrics_.push_seconds.at(round.group.value())
      .observe(to_seconds(host_.clock.now() - found->began_at));
  in_flight_.erase(found);
  metrics_.pushes_in_flight.set(static_cast<double>(in_flight_.size()));
  push_turns_.ended({.worker = worker, .round = round, .chunk = 0}, host_.clock.now());
  hand_out_turns();
}

void Server::push_received(WorkerId worker, ChunkId id, std::size_t bytes) {
  const auto amount = static_cast<double>(bytes);
  metrics_.push_bytes_total.at(id.round.group.value()).add(amount);
  metrics_.ingress_bytes_total.add(amount);
  last_pusher_ = worker;
  if (drift_) drift_->link.received(worker, id.round, bytes, host_.clock.now());
  push_turns_.moved({.worker = worker, .round = id.round, .chunk = 0}, host_.clock.now());
  // Heartbeats tell progress now and then; a push tells it at once.
  const Iteration finished(
      std::min(id.round.iteration.value() - 1, options_.last_iteration.value()));
  reached_ = std::max(reached_, finished);
}

void Server::skipped_nonfinite(WorkerId worker, ChunkId id) {
  refused(RefusalReason::nonfinite);
  worker_metrics_.nonfinite_chunks_total.at(worker.value()).add();
  host_.log.warning(
      "nonfinite_push_skipped",
      {{"rank", worker.value()},
       {"group", id.round.group.value()},
       {"iteration", id.round.iteration.value()},
       {"chunk", id.chunk}});
}

void Server::aggregator_moved() {
  if (!aggregator_) return;
  for (const ChunkId id : aggregator_->take_closed())
    send_closed(id);
  for (const auto& [worker, id] : aggregator_->take_resends()) {
    if (const auto found = sessions_.find(worker); found != sessions_.end()) {
      found->second->post(Resend{.id = id});
    }
  }
  for (const auto& [worker, id] : aggregator_->intake().holding()) {
    if (const auto found = sessions_.find(worker); found != sessions_.end()) {
      if (aggregator_->can_place(worker, id)) found->second->retry();
    }
  }
  if (const auto victim = aggregator_->take_victim()) {
    if (const auto found = sessions_.find(*victim); found != sessions_.end()) {
      found->second->retry();
    }
  }
}

void Server::send_reply(WorkerId worker, ChunkId id) {
  const Plan& plan = plans_.at(id.round.iteration);
  const auto& snapshot = center_->chunk(id.round.group, id.chunk);
  const ChunkHead head{
      .id = id, .plan = plan.version, .codec = codec_float32, .present = snapshot.present};
  sessions_.at(worker)->post_center(head, snapshot, has_turns(plan.admission));
  const auto bytes = static_cast<double>(snapshot.span().size_bytes());
  metrics_.pull_bytes_total.at(id.round.group.value()).add(bytes);
  metrics_.egress_bytes_total.add(bytes);
}

void Server::send_closed(ChunkId id) {
  const auto& snapshot = center_->chunk(id.round.group, id.chunk);
  const bool in_turns = has_turns(plans_.at(id.round.iteration).admission);
  for (const auto& [worker, session] : sessions_) {
    if (membership_.absent(worker, id.round.iteration)) continue;
    if (in_turns) {
      TurnRank rank = turn_rank(worker, id.round);
      rank.chunk = id.chunk;
      const TurnId turn{.worker = worker, .round = id.round, .chunk = id.chunk};
      reply_turns_.ask(turn, rank, snapshot.span().size_bytes());
    } else {
      send_reply(worker, id);
    }
  }
  if (in_turns) hand_out_replies();
  if (id.chunk + 1 != center_->chunks(id.round.group)) return;
  const auto opened = round_opened_at_.find(id.round.group);
  if (opened == round_opened_at_.end()) return;
  worker_metrics_.round_wait_seconds.at(last_pusher_.value())
      .observe(to_seconds(host_.clock.now() - opened->second));
  round_opened_at_.erase(opened);
  metrics_.rounds_total.add();
  if (snapshot.present < plans_.at(id.round.iteration).policy.workers) {
    metrics_.rounds_incomplete_total.add();
  }
}

}  // namespace stagger
