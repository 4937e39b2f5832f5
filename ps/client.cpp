#include "ps/client.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernels/rng.hpp"
#include "observability/check.hpp"
#include "tensor/arena.hpp"

namespace stagger {

namespace {

// A few chunks: the writer is never idle, and a turn ends within as many chunks.
constexpr std::size_t outbox_items_max = 8;
// Asked in a row once the plan is there, before pushes are in the way; afterwards one with each
// heartbeat.
constexpr std::uint64_t pings_at_start = 16;
constexpr Duration back_off_first = 20ms;
constexpr Duration back_off_max = 1s;

}  // namespace

Client::Client(Host host, ClientOptions options)
    : host_(std::move(host)),
      options_(std::move(options)),
      job_(job_hash(options_.hello.job)),
      begun_(host_.executor),
      ready_(host_.executor),
      ended_(host_.executor) {}

void Client::fail(ClientFailure::Kind kind, const std::string& what) const {
  throw ClientFailure(kind, fmt::format("PS {}: {}", to_string(options_.ps), what));
}

void Client::fail_lost(const Error& error) const {
  // The PS's own word may be lost with the connection, so both of its likely reasons are told here.
  fail(
      ClientFailure::Kind::lost,
      fmt::format(
          "lost: {}. Either the PS ended, or this worker was silent for {:.1f} s "
          "(timeouts.worker_s) and was declared gone: if the PS runs, start it again to rejoin",
          describe(error),
          to_seconds(options_.timeouts.worker)));
}

Task<std::unique_ptr<Connection>> Client::dial(TimePoint limit) {
  const TimePoint began = host_.clock.now();
  Duration back_off = back_off_first;
  RandomSequence random(host_.seed, fnv1a("dial"));
  for (std::uint64_t attempt = 1;; ++attempt) {
    auto connection = co_await host_.network.connect(options_.ps, limit);
    if (connection) co_return std::move(*connection);
    const TimePoint now = host_.clock.now();
    const double jitter = 0.5 + 0.5 * static_cast<double>(random.uniform());
    const TimePoint next = now + from_seconds(to_seconds(back_off) * jitter);
    if (connection.error().code == Errc::bad_address || next >= limit) {
      fail(
          ClientFailure::Kind::not_found,
          fmt::format(
              "not reached in {:.1f} s and {} attempts (timeouts.join_s is {:.0f} s): {}. Is "
              "`stagger ps` running, "
              "and is cluster.ps its address?",
              to_seconds(now - began),
              attempt,
              to_seconds(options_.timeouts.join),
              describe(connection.error())));
    }
    host_.log.if_changed(
        "dial", LogLevel::info, "dial_failed", {{"reason", describe(connection.error())}});
    co_await host_.clock.sleep_until(next);
    back_off = std::min(2 * back_off, back_off_max);
  }
}

Task<Welcome> Client::join() {
  const TimePoint limit = host_.clock.now() + options_.timeouts.join;
  connection_ = co_await dial(limit);
  const auto hello = encode_message(job_, options_.hello);
  const auto sent = co_await connection_->send(
      {.head = std::as_bytes(std::span(hello)), .payload = {}}, options_.timeouts.worker);
  if (!sent) fail(ClientFailure::Kind::lost, describe(sent.error()));
  const auto frame =
      co_await connection_->receive_head(host_.clock.now() + options_.timeouts.worker);
  if (!frame) fail(ClientFailure::Kind::lost, "no answer to hello: " + describe(frame.error()));
  const auto message = decode_message(job_, *frame);
  if (!message) fail(ClientFailure::Kind::refused, describe(message.error()));
  if (const auto* refuse = std::get_if<Refuse>(&*message)) {
    fail(
        ClientFailure::Kind::refused,
        fmt::format("job \"{}\" refused: {}", options_.hello.job, refuse->reason));
  }
  const auto* welcome = std::get_if<Welcome>(&*message);
  if (welcome == nullptr) {
    fail(ClientFailure::Kind::refused, fmt::format("{} instead of welcome", name_of(*message)));
  }
  // The PS may leave a push unread until others have caught up. Whether it lives, its heartbeats
  // tell: read_replies() has the limit.
  outbox_ =
      std::make_unique<Outbox>(host_.executor, *connection_, outbox_items_max, Duration::max());
  co_return *welcome;
}

void Client::serve(TaskScope& scope, ClientEvents& events) {
  events_ = &events;
  scope.spawn("write_requests", write_frames());
  scope.spawn("read_replies", read_replies());
  scope.spawn("send_heartbeats", send_heartbeats());
}

void Client::send(const Message& message) {
  // Control messages are few; a queue that is full of chunks makes room within a chunk's time, so
  // they may exceed it.
  outbox_->post_urgent({.head = encode_message(job_, message), .payload = {}, .keep = {}});
}

Task<void> Client::write_frames() {
  const auto written = co_await outbox_->write_frames();
  if (written || leaving_) co_return;
  fail_lost(written.error());
}

Task<void> Client::send_heartbeats() {
  while (!leaving_) {
    send(progress());
    if (ready_.is_set() && !ping_open_) ask_time();
    co_await host_.clock.sleep_until(host_.clock.now() + options_.timeouts.heartbeat);
  }
}

void Client::ready() {
  ready_.set();
  if (!ping_open_) ask_time();
}

/// One at a time, and none before the plan: a probe would measure them, too. The PS's clock is
/// asked when the question is written, not when it is queued.
void Client::ask_time() {
  ping_open_ = true;
  Outbox::Item item{.head = encode_message(job_, Ping{.number = ++ping_})};
  item.before = [this](Outbox::Item& /*written*/) {
    ping_asked_at_ = host_.clock.now();
  };
  outbox_->post_urgent(std::move(item));
}

/// An answer that no question awaits says nothing, and is no reason to stop.
void Client::hear_time(const Pong& pong) {
  if (!ping_open_ || pong.number != ping_) return;
  ping_open_ = false;
  clock_.add(
      {.asked = ping_asked_at_,
       .heard = pong.heard,
       .answered = pong.answered,
       .received = received_at_});
  if (ping_ < pings_at_start) ask_time();
}

std::optional<Client::CommonStart> Client::common_start(Iteration iteration) const {
  const auto rhythm = rhythms_.at(iteration);
  if (!rhythm) return std::nullopt;
  const auto start = clock_.own_time(rhythm->start);
  if (!start) return std::nullopt;
  return CommonStart{.at = *start, .iteration_time = rhythm->iteration_time};
}

Heartbeat Client::progress() {
  Heartbeat progress = events_->take_progress();
  const LinkStats stats = connection_->stats();
  progress.round_trip = stats.round_trip;
  progress.retransmissions = stats.retransmissions;
  progress.clock = clock_.at(host_.clock.now());
  return progress;
}

Task<void> Client::read_replies() {
  for (;;) {
    auto frame = co_await connection_->receive_head(host_.clock.now() + options_.timeouts.worker);
    received_at_ = host_.clock.now();
    if (!frame) {
      if (leaving_) break;
      fail_lost(frame.error());
    }
    const auto message = decode_message(job_, *frame);
    if (!message) fail(ClientFailure::Kind::refused, describe(message.error()));
    if (const auto* center = std::get_if<CenterReply>(&*message)) {
      co_await receive_center(std::move(*frame), center->head);
    } else if (frame->payload_bytes != 0) {
      fail(ClientFailure::Kind::refused, fmt::format("{} with a payload", name_of(*message)));
    } else {
      handle(*message);
      if (begun_.is_set()) co_await ready_.wait();
    }
  }
  ended_.set();
}

void Client::handle(const Message& message) {
  if (const auto* begin = std::get_if<Begin>(&message)) {
    begin_ = *begin;
    begun_.set();
  } else if (const auto* again = std::get_if<Resend>(&message)) {
    resend(again->id);
  } else if (const auto* turn = std::get_if<Turn>(&message)) {
    take_turn(turn->round);
  } else if (const auto* received = std::get_if<Received>(&message)) {
    push_received(received->round);
  } else if (const auto* pong = std::get_if<Pong>(&message)) {
    hear_time(*pong);
  } else if (const auto* rhythm = std::get_if<Rhythm>(&message)) {
    rhythms_.heard(*rhythm);
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    answer_probe(*probe);
  } else if (const auto* prepare = std::get_if<Prepare>(&message)) {
    const Iteration hold = events_->hold_iteration();
    events_->prepared(*prepare, hold);
    send(Promise{.agreement = prepare->agreement, .hold = hold});
  } else if (const auto* commit = std::get_if<Commit>(&message)) {
    events_->committed(*commit);
  } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
    // After the begin it says that the worker was left behind, not that it does not fit the job.
    const bool begun = begun_.is_set();
    fail(
        begun ? ClientFailure::Kind::lost : ClientFailure::Kind::refused,
        (begun ? "lost: " : "refused: ") + refuse->reason);
  } else if (!std::holds_alternative<Heartbeat>(message)) {
    fail(ClientFailure::Kind::refused, fmt::format("a PS does not send {}", name_of(message)));
  }
}

Task<Begin> Client::begin(Duration limit) {
  const bool begun = co_await begun_.wait_until(host_.clock, host_.clock.now() + limit);
  if (!begun) {
    fail(
        ClientFailure::Kind::lost,
        fmt::format(
            "no plan within {:.0f} s (timeouts.join_s): others are missing", to_seconds(limit)));
  }
  co_return *begin_;
}

std::size_t Client::chunk_count(std::size_t floats) const {
  const std::size_t chunk_floats = options_.chunk_bytes / sizeof(float);
  return (floats + chunk_floats - 1) / chunk_floats;
}

std::span<float> Client::chunk_of(std::span<float> values, std::uint32_t chunk) const {
  const std::size_t chunk_floats = options_.chunk_bytes / sizeof(float);
  const auto rest = values.subspan(chunk * chunk_floats);
  return rest.first(std::min(rest.size(), chunk_floats));
}

Client::GroupState& Client::state(GroupId group) {
  while (groups_.size() <= group.value()) {
    groups_.push_back(std::make_unique<GroupState>(host_.executor));
  }
  return *groups_[group.value()];
}

void Client::open(const Exchange& exchange) {
  GroupState& group = state(exchange.round.group);
  CHECK(group.done.is_set(), "an exchange of the group is open", exchange.round.group);
  group.exchange = exchange;
  group.missing = chunk_count(exchange.center.size());
  group.received.assign(group.missing, false);
  group.done.reset();
}

Outbox::Item Client::chunk_item(const Exchange& exchange, std::uint32_t chunk) const {
  const std::size_t chunk_floats = options_.chunk_bytes / sizeof(float);
  const auto rest = exchange.pushed.subspan(chunk * chunk_floats);
  const auto values = rest.first(std::min(rest.size(), chunk_floats));
  const Push push{{.id = {.round = exchange.round, .chunk = chunk}, .plan = exchange.plan}};
  return {.head = encode_message(job_, push, values), .payload = values, .keep = {}};
}

Task<void> Client::await_turn(GroupId group, Duration wait) {
  GroupState& exchanging = state(group);
  exchanging.turn.reset();
  send(Announce{.round = exchanging.exchange.round, .wait = wait});
  co_await exchanging.turn.wait();
}

void Client::push_received(RoundId round) {
  if (const auto began = push_times_.began_at(round)) record(Activity::push, round, *began);
  push_times_.received(round, host_.clock.now());
}

void Client::record(Activity activity, RoundId round, TimePoint begin) const {
  if (options_.timeline == nullptr) return;
  options_.timeline->add(
      round.iteration,
      {.activity = activity, .group = round.group, .begin = begin, .end = host_.clock.now()});
}

/// A turn for a round that is over is of no use, and no mistake: both may cross on the way.
void Client::take_turn(RoundId round) {
  if (round.group.value() >= groups_.size()) {
    fail(
        ClientFailure::Kind::refused,
        fmt::format("turn for group {}: no such group", round.group.value()));
  }
  GroupState& group = state(round.group);
  if (group.exchange.round == round) group.turn.set();
}

Task<void> Client::push(GroupId group) {
  const Exchange exchange = state(group).exchange;
  const auto chunks = static_cast<std::uint32_t>(chunk_count(exchange.pushed.size()));
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    auto item = chunk_item(exchange, chunk);
    if (chunk == 0) {
      item.before = [this, round = exchange.round](Outbox::Item& /*written*/) {
        push_times_.began(round, host_.clock.now());
      };
    }
    bytes_pushed_ += item.payload.size_bytes();
    co_await outbox_->send(std::move(item));
  }
}

void Client::resend(ChunkId id) {
  const GroupState& group = state(id.round.group);
  if (group.done.is_set() || group.exchange.round != id.round) return;
  if (id.chunk >= chunk_count(group.exchange.pushed.size())) return;
  outbox_->post_urgent(chunk_item(group.exchange, id.chunk));
}

/// The PS measures the link with what comes back.
void Client::answer_probe(const Probe& probe) {
  if (probe.bytes == 0 || probe.bytes % 8 != 0 || probe.bytes > options_.chunk_bytes) {
    fail(
        ClientFailure::Kind::refused,
        fmt::format(
            "asked for a probe of {} bytes: not a multiple of 8 from 8 to wire.chunk_bytes = {}",
            probe.bytes,
            options_.chunk_bytes));
  }
  const auto payload = std::make_shared<AlignedFloats>(probe.bytes / sizeof(float));
  const std::span<const float> values = std::as_const(*payload).span();
  outbox_->post_urgent(
      {.head = encode_message(job_, probe, values), .payload = values, .keep = payload});
}

Task<void> Client::receive_center(FrameHead frame, ChunkHead head) {
  const auto named = fmt::format(
      "center of group {} iteration {} chunk {}",
      head.id.round.group.value(),
      head.id.round.iteration.value(),
      head.id.chunk);
  if (head.id.round.group.value() >= groups_.size())
    fail(ClientFailure::Kind::refused, named + ": no such group");
  GroupState& group = state(head.id.round.group);
  if (group.exchange.round != head.id.round || head.id.chunk >= group.received.size() ||
      group.received[head.id.chunk]) {
    fail(ClientFailure::Kind::refused, named + ": not awaited");
  }
  const auto target = chunk_of(group.exchange.center, head.id.chunk);
  if (frame.payload_bytes != payload_bytes(target).size()) {
    fail(
        ClientFailure::Kind::refused,
        fmt::format(
            "{}: {} bytes, {} expected", named, frame.payload_bytes, payload_bytes(target).size()));
  }
  const auto received =
      co_await connection_->receive_payload(payload_bytes(target), options_.timeouts.worker);
  if (!received) fail(ClientFailure::Kind::lost, named + ": " + describe(received.error()));
  if (const auto exact = check_payload(frame, target); !exact) {
    fail(ClientFailure::Kind::refused, named + ": " + exact.error().detail);
  }
  if (head.id.round.iteration.value() > 0) bytes_pulled_ += target.size_bytes();
  group.received[head.id.chunk] = true;
  if (--group.missing == 0) group.done.set();
}

Task<void> Client::await_reply(GroupId group) {
  co_await state(group).done.wait();
}

bool Client::reply_pending(GroupId group) const {
  return group.value() < groups_.size() && !groups_[group.value()]->done.is_set();
}

Task<void> Client::farewell(const Farewell& farewell) {
  leaving_ = true;
  send(farewell);
  outbox_->close();
  co_await ended_.wait_until(host_.clock, host_.clock.now() + options_.timeouts.worker);
  connection_->close();
  co_await ended_.wait();
}

}  // namespace stagger
