#include "net/sim/tcp_connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "observability/check.hpp"

namespace stagger {
namespace {

void wake(Waiter* waiter) {
  if (waiter != nullptr) waiter->wake(Wake::signalled);
}

}  // namespace

SimTcpConnection::SimTcpConnection(
    Executor executor, SimFabric& fabric, Nodes nodes, Way way, std::string peer)
    : executor_(std::move(executor)),
      fabric_(fabric),
      nodes_(nodes),
      way_(std::move(way)),
      peer_(std::move(peer)),
      id_(fabric.next_id()) {
  FabricStream* const stream = this;
  nodes_.own.streams.emplace(id_, stream);
  way_.out->on_sent([this] { wake(sender_); });
  way_.in->on_arrival([this] {
    wake(receiver_);
    if (way_.in->ended()) wake(sender_);
  });
}

SimTcpConnection::~SimTcpConnection() {
  close();
  nodes_.own.streams.erase(id_);
}

Task<Result<void>> SimTcpConnection::send(FrameView frame, Duration stall_max) {
  const std::size_t prefix_bytes = frame_prefix_bytes(!frame.payload.empty());
  std::array<std::byte, frame_prefix_bytes_max> prefix{};
  encode_frame_prefix(frame, std::span(prefix).first(prefix_bytes));  // the same CHECKs as TCP
  if (closed_ || way_.in->ended()) co_return fail(ending());

  SimFrame carried;
  carried.wire_bytes =
      prefix_bytes + frame.head.size() + frame.payload.size() * fabric_.options().payload_scale;
  carried.head.resize(frame.head.size() / sizeof(std::uint64_t));
  std::memcpy(carried.head.data(), frame.head.data(), frame.head.size());
  carried.payload.assign(frame.payload.begin(), frame.payload.end());
  counted_.bytes_sent += carried.wire_bytes;
  sending_ = true;
  way_.out->write(std::move(carried));
  std::uint64_t unsent = way_.out->sender().unsent();
  TimePoint give_up = deadline_after(fabric_.clock().now(), stall_max);
  while (!closed_ && !way_.out->takes_more()) {
    if (way_.in->ended()) co_return fail(ending());
    const Wake woken = co_await park(&sender_, give_up);
    const bool moved = way_.out->sender().unsent() < unsent;
    if (woken == Wake::deadline && !moved) {
      co_return fail(Error{.code = Errc::deadline, .detail = peer_ + " takes nothing more"});
    }
    if (moved) give_up = deadline_after(fabric_.clock().now(), stall_max);
    unsent = way_.out->sender().unsent();
  }
  if (closed_) co_return ending();
  sending_ = false;
  co_return Result<void>();
}

Task<Result<FrameHead>> SimTcpConnection::receive_head(TimePoint deadline) {
  CHECK(!payload_open_, "the last frame's payload was not received");
  while (!closed_ && !way_.in->has_head()) {
    if (way_.in->ended()) co_return fail(ending());
    const Wake woken = co_await park(&receiver_, nodes_.own.clock.world(deadline));
    if (woken == Wake::deadline && !closed_ && !way_.in->has_head() && !way_.in->ended()) {
      co_return fail(Error{.code = Errc::deadline, .detail = peer_ + " is silent"});
    }
  }
  if (closed_) co_return ending();
  const SimFrame& first = way_.in->head();
  const FrameLimits& limits = fabric_.options().limits;
  FrameHead head{.words = first.head, .payload_bytes = first.payload.size()};
  if (head.words.size() * sizeof(std::uint64_t) > limits.head_bytes_max ||
      head.payload_bytes > limits.payload_bytes_max) {
    co_return fail(Error{.code = Errc::bad_frame, .detail = peer_ + " sent too large a frame"});
  }
  counted_.bytes_received += first.wire_bytes;
  payload_open_ = head.payload_bytes > 0;
  if (!payload_open_) fabric_.record(nodes_.other, nodes_.own, way_.in->take());
  co_return head;
}

Task<Result<void>> SimTcpConnection::receive_payload(
    std::span<std::byte> target, Duration stall_max) {
  if (closed_) co_return ending();
  CHECK(payload_open_, "no payload to receive");
  std::uint64_t arrived = way_.in->arrived();
  TimePoint give_up = deadline_after(fabric_.clock().now(), stall_max);
  while (!closed_ && !way_.in->has_payload()) {
    if (way_.in->ended()) co_return fail(ending());
    const Wake woken = co_await park(&receiver_, give_up);
    const bool moved = way_.in->arrived() > arrived;
    if (woken == Wake::deadline && !moved) {
      co_return fail(
          Error{.code = Errc::deadline, .detail = peer_ + " fell silent inside a frame"});
    }
    if (moved) give_up = deadline_after(fabric_.clock().now(), stall_max);
    arrived = way_.in->arrived();
  }
  if (closed_) co_return ending();
  const SimFrame frame = way_.in->take();
  CHECK_EQ(target.size(), frame.payload.size());
  std::copy(frame.payload.begin(), frame.payload.end(), target.begin());
  fabric_.record(nodes_.other, nodes_.own, frame);
  payload_open_ = false;
  co_return Result<void>();
}

void SimTcpConnection::close() {
  if (std::exchange(closed_, true)) return;
  way_.out->finish(sending_);
  way_.in->abandon();
  wake(sender_);
  wake(receiver_);
}

LinkStats SimTcpConnection::stats() const {
  LinkStats stats = counted_;
  stats.round_trip = way_.out->sender().round_trip();
  stats.retransmissions = way_.out->sender().retransmissions();
  return stats;
}

Error SimTcpConnection::fail(Error error) {
  close();
  return error;
}

Error SimTcpConnection::ending() {
  if (closed_) {
    return Error{.code = Errc::closed, .detail = "the connection to " + peer_ + " was closed"};
  }
  return Error{.code = Errc::disconnected, .detail = peer_ + " closed the connection"};
}

Task<Wake> SimTcpConnection::park(Waiter** place, TimePoint deadline) {
  CHECK(*place == nullptr, "two tasks use one direction of a connection");
  Waiter waiter(executor_);
  *place = &waiter;
  try {
    const Alarm alarm(fabric_.clock(), waiter, deadline);
    const Wake woken = co_await waiter.wait();
    *place = nullptr;
    co_return woken;
  } catch (...) {
    *place = nullptr;
    close();
    throw;
  }
}

}  // namespace stagger
