#include "ps/session.hpp"

#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "ps/server.hpp"

namespace stagger {

namespace {

constexpr std::size_t outbox_items_max =
    65536;  // replies are bounded by the rounds that can close; this is the last resort

RefusalReason reason_of(const Error& error) {
  return error.code == Errc::bad_frame ? RefusalReason::bad_frame : RefusalReason::bad_message;
}

}  // namespace

Session::Session(Server& server, std::unique_ptr<Connection> connection)
    : server_(server),
      connection_(std::move(connection)),
      outbox_(
          server.host().executor, *connection_, outbox_items_max, server.options().timeouts.worker),
      scope_(server.host().executor, "session"),
      retry_(server.host().executor) {}

Task<std::string> Session::run() {
  scope_.spawn("write_frames", write_frames());
  scope_.spawn("send_heartbeats", send_heartbeats());
  std::string reason = "cancelled";
  std::exception_ptr cancelled;
  try {
    reason = co_await read_requests();
  } catch (...) {
    cancelled = std::current_exception();
  }
  if (worker_) server_.detach(*worker_, *this, reason);
  for (const auto& [round, count] : receiving_)
    server_.push_ended(*worker_, round);
  outbox_.close();
  if (cancelled) scope_.cancel();
  co_await boost::asio::this_coro::reset_cancellation_state();  // the tasks are awaited all the
                                                                // same
  co_await scope_.join();
  connection_->close();
  if (cancelled) std::rethrow_exception(cancelled);
  co_return reason;
}

Task<void> Session::write_frames() {
  co_await outbox_.write_frames();
  connection_->close();
  scope_.cancel();  // the connection is of no more use, or the session has ended: the heartbeats
                    // end too
}

Task<void> Session::send_heartbeats() {
  for (;;) {
    co_await server_.host().clock.sleep_until(
        server_.host().clock.now() + server_.options().timeouts.heartbeat);
    post(Heartbeat{});
  }
}

void Session::post(const Message& message) {
  Outbox::Item item{
      .head = encode_message(job_hash(server_.options().job), message),
      .payload = {},
      .keep = {},
      .sent = {}};
  if (!outbox_.post(std::move(item))) connection_->close();
}

/// What the clock says is written last of all: the answer may have waited behind others.
std::optional<std::string> Session::answer(const Ping& ping) {
  if (pong_queued_) {
    return refuse(RefusalReason::bad_message, "a ping before the last one was answered");
  }
  pong_queued_ = true;
  const Pong pong{.number = ping.number, .heard = as_ps_time(read_at_), .answered = {}};
  Outbox::Item item{.head = {}};
  item.before = [this, pong](Outbox::Item& written) {
    Pong stamped = pong;
    stamped.answered = as_ps_time(server_.host().clock.now());
    written.head = encode_message(job_hash(server_.options().job), stamped);
    pong_queued_ = false;
  };
  outbox_.post_urgent(std::move(item));
  return std::nullopt;
}

Outbox::Item Session::center_item(const ChunkHead& head, const Center::Snapshot& snapshot) const {
  const auto payload = snapshot.span();
  return {
      .head = encode_message(job_hash(server_.options().job), CenterReply{head}, payload),
      .payload = payload,
      .keep = snapshot.values};
}

void Session::post_center(const ChunkHead& head, const Center::Snapshot& snapshot, bool in_turn) {
  Outbox::Item item = center_item(head, snapshot);
  if (in_turn) {
    item.sent = [this, id = head.id] {
      server_.reply_sent(*worker_, id);
    };
  }
  if (!outbox_.post(std::move(item))) connection_->close();
}

void Session::hold_joining(const ChunkHead& head, const Center::Snapshot& snapshot) {
  joining_.push_back(center_item(head, snapshot));
  joining_.back().sent = [this] {
    server_.joining_sent(*worker_);
  };
}

void Session::send_joining() {
  CHECK(!joining_.empty(), "a joining center of more pieces", worker_->value());
  outbox_.post_urgent(std::move(joining_.front()));
  joining_.pop_front();
}

std::string Session::refuse(RefusalReason reason, const std::string& why) {
  server_.refused(reason);
  post(Refuse{why});
  return why;
}

/// Of a connection on which nothing more can be read.
std::string Session::why_ended(const Error& error) {
  if (farewell_) return "left";
  if (error.code == Errc::bad_frame) server_.refused(RefusalReason::bad_frame);
  if (error.code == Errc::deadline) {
    post(Refuse{fmt::format(
        "rank {} was silent for {:.1f} s (timeouts.worker_s); start it again to rejoin",
        worker_->value(),
        to_seconds(server_.options().timeouts.worker))});
  }
  return describe(error);
}

Task<std::string> Session::read_requests() {
  if (auto ended = co_await greet()) co_return std::move(*ended);
  for (;;) {
    const TimePoint deadline = server_.host().clock.now() + server_.options().timeouts.worker;
    auto frame = co_await connection_->receive_head(deadline);
    read_at_ = server_.host().clock.now();
    if (!frame) co_return why_ended(frame.error());
    server_.heard(*worker_, incarnation_);
    auto message = decode_message(job_hash(server_.options().job), *frame);
    if (!message) co_return refuse(reason_of(message.error()), describe(message.error()));
    auto ended = co_await handle(std::move(*frame), std::move(*message));
    if (ended) co_return std::move(*ended);
  }
}

Task<std::optional<std::string>> Session::greet() {
  const TimePoint deadline = server_.host().clock.now() + server_.options().timeouts.worker;
  const auto frame = co_await connection_->receive_head(deadline);
  if (!frame) {
    if (frame.error().code == Errc::bad_frame) server_.refused(RefusalReason::bad_frame);
    co_return describe(frame.error());
  }
  const auto message = decode_message(job_hash(server_.options().job), *frame);
  if (!message) {
    const bool other_job = message.error().detail.find("another job") != std::string::npos;
    co_return refuse(
        other_job ? RefusalReason::wrong_job : RefusalReason::bad_message,
        fmt::format("{} (this is job \"{}\")", message.error().detail, server_.options().job));
  }
  const Hello* hello = std::get_if<Hello>(&*message);
  if (hello == nullptr || frame->payload_bytes != 0) {
    co_return refuse(RefusalReason::bad_message, fmt::format("{} before hello", name_of(*message)));
  }
  const auto admitted = server_.admit(*hello, connection_->peer());
  if (!admitted) co_return refuse(RefusalReason::not_a_member, admitted.error().detail);
  worker_ = *admitted;
  incarnation_ = server_.incarnation(*worker_);
  const bool profile_wanted = server_.wants_profile();
  post(Welcome{.rank = *worker_, .incarnation = incarnation_, .profile_wanted = profile_wanted});
  server_.attach(*worker_, *this);
  if (!profile_wanted) server_.wants_to_rejoin(*worker_);
  co_return std::nullopt;
}

Task<std::optional<std::string>> Session::handle(FrameHead frame, Message message) {
  if (const Push* push = std::get_if<Push>(&message)) {
    co_return co_await receive_chunk(std::move(frame), push->head);
  }
  if (const Probe* probe = std::get_if<Probe>(&message)) {
    co_return co_await receive_probe(std::move(frame), *probe);
  }
  if (frame.payload_bytes != 0) {
    co_return refuse(
        RefusalReason::bad_message, fmt::format("{} with a payload", name_of(message)));
  }
  co_return handle_control(std::move(message));
}

std::optional<std::string> Session::handle_control(Message message) {
  if (const auto* profile = std::get_if<Profile>(&message)) {
    server_.profiled(*worker_, *profile);
    return std::nullopt;
  }
  if (const auto* progress = std::get_if<Heartbeat>(&message)) {
    server_.progressed(*worker_, *progress);
    return std::nullopt;
  }
  if (const auto* ping = std::get_if<Ping>(&message)) {
    return answer(*ping);
  }
  if (const auto* promise = std::get_if<Promise>(&message)) {
    server_.promised(*worker_, *promise);
    return std::nullopt;
  }
  if (const auto* announce = std::get_if<Announce>(&message)) {
    const auto asked = server_.announced(*worker_, *announce);
    if (!asked) return refuse(RefusalReason::bad_message, asked.error().detail);
    return std::nullopt;
  }
  if (const auto* farewell = std::get_if<Farewell>(&message)) {
    farewell_ = true;
    server_.farewell(*worker_, *farewell);
    return std::string("left");
  }
  return refuse(
      RefusalReason::bad_message, fmt::format("a worker does not send {}", name_of(message)));
}

Task<std::optional<std::string>> Session::receive_chunk(FrameHead frame, ChunkHead head) {
  if (!server_.started()) co_return refuse(RefusalReason::stale, "push before begin");
  const auto checked = server_.aggregator().check(*worker_, head);
  if (!checked) co_return refuse(RefusalReason::stale, checked.error().detail);
  const ChunkId id = head.id;
  const std::size_t size = server_.center_chunks().chunk_size(id.round.group, id.chunk);
  ChunkBuffer values = server_.center_chunks().pool().acquire();
  const auto target = values->span().first(size);
  if (frame.payload_bytes != payload_bytes(target).size()) {
    co_return refuse(
        RefusalReason::wrong_length,
        fmt::format(
            "push of group {} iteration {} chunk {}: payload of {} bytes, {} expected",
            id.round.group.value(),
            id.round.iteration.value(),
            id.chunk,
            frame.payload_bytes,
            payload_bytes(target).size()));
  }
  if (!receiving_.contains(id.round)) co_await begin_push(id.round);
  busy_ = true;
  const auto received = co_await connection_->receive_payload(
      payload_bytes(target), server_.options().timeouts.worker);
  busy_ = false;
  if (!received) co_return describe(received.error());
  server_.heard(*worker_, incarnation_);
  if (const auto exact = check_payload(frame, target); !exact) {
    co_return refuse(RefusalReason::wrong_length, exact.error().detail);
  }
  server_.push_received(*worker_, id, target.size_bytes());
  count_chunk(id);
  co_await place(id, std::move(values));
  co_return std::nullopt;
}

Task<void> Session::begin_push(RoundId round) {
  retry_.reset();
  busy_ = true;
  bool waited = false;
  while (!server_.push_may_begin(*worker_, round)) {
    waited = true;
    co_await retry_.wait();
    retry_.reset();
  }
  busy_ = false;
  receiving_.emplace(round, 0);
  server_.push_began(*worker_, round, waited);
}

void Session::count_chunk(ChunkId id) {
  const auto push = receiving_.find(id.round);
  if (push == receiving_.end()) return;
  if (++push->second < server_.center_chunks().chunks(id.round.group)) return;
  receiving_.erase(push);
  post(Received{.round = id.round});
  server_.push_ended(*worker_, id.round);
}

Task<void> Session::place(ChunkId id, ChunkBuffer values) {
  for (;;) {
    const auto offer = server_.aggregator().offer(*worker_, id, values);
    if (offer == Aggregator::Offer::repeated) answer_repeated(id);
    if (offer == Aggregator::Offer::skipped) server_.skipped_nonfinite(*worker_, id);
    if (offer != Aggregator::Offer::held) break;
    server_.aggregator().intake().hold(*worker_, id);
    server_.held(*worker_);
    retry_.reset();
    server_.aggregator_moved();
    busy_ = true;
    co_await retry_.wait();
    busy_ = false;
    server_.heard(*worker_, incarnation_);
    server_.aggregator().intake().unhold(*worker_);
    server_.placed(*worker_);
  }
  server_.aggregator_moved();
}

void Session::answer_repeated(ChunkId id) {
  server_.refused(RefusalReason::repeated);
  const auto& snapshot = server_.center_chunks().chunk(id.round.group, id.chunk);
  if (snapshot.iteration != id.round.iteration)
    return;  // still open: the reply comes with its close
  const ChunkHead head{
      .id = id,
      .plan = server_.plans().at(id.round.iteration).version,
      .codec = codec_float32,
      .present = snapshot.present};
  post_center(head, snapshot, false);
}

}  // namespace stagger
