#include <algorithm>
#include <cstring>
#include <utility>

#include "net/sim/network.hpp"
#include "observability/check.hpp"

namespace stagger {

SimConnection::SimConnection(
    Executor executor, SimFabric& fabric, FabricNode& node, std::string peer)
    : executor_(std::move(executor)),
      fabric_(fabric),
      node_(node),
      peer_(std::move(peer)),
      id_(fabric.attach(node, *this)) {}

SimConnection::~SimConnection() {
  close();
  fabric_.detach(id_);
}

void SimConnection::pair(SimConnection& one, SimConnection& other) {
  one.fabric_.pair(one.id_, other.id_);
  const Duration round_trip =
      SimFabric::latency(one.node_, other.node_) + SimFabric::latency(other.node_, one.node_);
  one.stats_.round_trip = round_trip;
  other.stats_.round_trip = round_trip;
}

Task<Result<void>> SimConnection::send(FrameView frame, Duration stall_max) {
  const std::size_t prefix_bytes = frame_prefix_bytes(!frame.payload.empty());
  std::array<std::byte, frame_prefix_bytes_max> prefix{};
  encode_frame_prefix(frame, std::span(prefix).first(prefix_bytes));  // the same CHECKs as TCP

  SimFrame carried;
  carried.wire_bytes =
      prefix_bytes + frame.head.size() + frame.payload.size() * fabric_.options().payload_scale;
  const std::uint64_t bytes = carried.wire_bytes;
  const Result<void> room = co_await wait_for_room(bytes, stall_max);
  if (!room) co_return fail(room.error());

  carried.head.resize(frame.head.size() / sizeof(std::uint64_t));
  std::memcpy(carried.head.data(), frame.head.data(), frame.head.size());
  carried.payload.assign(frame.payload.begin(), frame.payload.end());
  const SimFabric::Carried way = fabric_.carry(id_, std::move(carried));
  in_flight_bytes_ += bytes;
  sending_ = way.packet;
  while (!ended() && fabric_.clock().now() < way.taken)
    co_await park(&sender_, way.taken);
  if (ended()) co_return fail(ending());
  sending_ = 0;
  stats_.bytes_sent += bytes;
  co_return Result<void>();
}

Task<Result<void>> SimConnection::wait_for_room(std::uint64_t bytes, Duration stall_max) {
  TimePoint give_up = deadline_after(fabric_.clock().now(), stall_max);
  while (!ended()) {
    const bool window_open =
        in_flight_bytes_ == 0 || in_flight_bytes_ + bytes <= fabric_.options().window_bytes;
    const TimePoint room = node_.egress.room_at(fabric_.clock().now());
    if (window_open && room <= give_up) co_return Result<void>();
    if (co_await park(&sender_, give_up) == Wake::deadline) {
      co_return Error{.code = Errc::deadline, .detail = peer_ + " takes nothing more"};
    }
    give_up = deadline_after(fabric_.clock().now(), stall_max);  // the peer has read: progress
  }
  co_return ending();
}

Task<Result<FrameHead>> SimConnection::receive_head(TimePoint deadline) {
  CHECK(!payload_.has_value(), "the last frame's payload was not received");
  while (!closed_ && inbox_.empty()) {
    if (peer_closed_) co_return fail(ending());
    const Wake wake = co_await park(&receiver_, node_.clock.world(deadline));
    if (wake == Wake::deadline && inbox_.empty() && !ended()) {
      co_return fail(Error{.code = Errc::deadline, .detail = peer_ + " is silent"});
    }
  }
  if (closed_) co_return ending();
  co_return take_head();
}

Result<FrameHead> SimConnection::take_head() {
  SimFrame frame = std::move(inbox_.front());
  inbox_.pop_front();
  const FrameLimits& limits = fabric_.options().limits;
  FrameHead head{.words = std::move(frame.head), .payload_bytes = frame.payload.size()};
  const bool too_large = head.words.size() * sizeof(std::uint64_t) > limits.head_bytes_max ||
                         head.payload_bytes > limits.payload_bytes_max;
  if (too_large) {
    return fail(Error{.code = Errc::bad_frame, .detail = peer_ + " sent too large a frame"});
  }
  if (head.payload_bytes > 0) payload_ = std::move(frame.payload);
  stats_.bytes_received += frame.wire_bytes;
  fabric_.credit_peer(id_, frame.wire_bytes);
  return head;
}

Task<Result<void>> SimConnection::receive_payload(
    std::span<std::byte> target, Duration /*stall_max: the payload came with its head*/) {
  if (closed_) co_return ending();
  CHECK(payload_.has_value(), "no payload to receive");
  CHECK_EQ(target.size(), payload_->size());
  std::copy(payload_->begin(), payload_->end(), target.begin());
  payload_.reset();
  co_return Result<void>();
}

void SimConnection::close() {
  if (std::exchange(closed_, true)) return;
  if (sending_ != 0) fabric_.abandon(sending_);
  fabric_.hang_up(id_);
  payload_.reset();
  inbox_.clear();
  if (sender_ != nullptr) sender_->wake(Wake::signalled);
  if (receiver_ != nullptr) receiver_->wake(Wake::signalled);
}

void SimConnection::deliver(SimFrame frame) {
  if (closed_) return;
  inbox_.push_back(std::move(frame));
  if (receiver_ != nullptr) receiver_->wake(Wake::signalled);
}

void SimConnection::peer_closed() {
  peer_closed_ = true;
  if (sender_ != nullptr) sender_->wake(Wake::signalled);
  if (receiver_ != nullptr) receiver_->wake(Wake::signalled);
}

void SimConnection::credit(std::uint64_t bytes) {
  in_flight_bytes_ -= bytes;
  if (sender_ != nullptr) sender_->wake(Wake::signalled);
}

Error SimConnection::fail(Error error) {
  close();
  return error;
}

Error SimConnection::ending() {
  if (closed_) {
    return Error{.code = Errc::closed, .detail = "the connection to " + peer_ + " was closed"};
  }
  return Error{.code = Errc::disconnected, .detail = peer_ + " closed the connection"};
}

Task<Wake> SimConnection::park(Waiter** place, TimePoint deadline) {
  CHECK(*place == nullptr, "two tasks use one direction of a connection");
  Waiter waiter(executor_);
  *place = &waiter;
  try {
    const Alarm alarm(fabric_.clock(), waiter, deadline);
    const Wake wake = co_await waiter.wait();
    *place = nullptr;
    co_return wake;
  } catch (...) {
    *place = nullptr;
    close();
    throw;
  }
}

}  // namespace stagger
