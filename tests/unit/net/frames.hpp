#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/network.hpp"
#include "net/task.hpp"

/// Whole frames for tests of connections.
namespace stagger {

struct TestFrame {
  std::vector<std::uint64_t> head;
  std::vector<std::uint64_t> payload;

  bool operator==(const TestFrame&) const = default;
};

/// Words that differ from each other and from those of other seeds.
inline TestFrame make_frame(std::size_t head_words, std::size_t payload_words, std::uint64_t seed) {
  TestFrame frame{.head = {}, .payload = {}};
  for (std::size_t i = 0; i < head_words; ++i)
    frame.head.push_back(seed * 1000003 + i);
  for (std::size_t i = 0; i < payload_words; ++i) {
    frame.payload.push_back((seed << 32U) ^ (i * 0x9e3779b97f4a7c15U));
  }
  return frame;
}

/// The frame by value: it lives until the send has returned.
inline Task<Result<void>> send_frame(Connection& connection, TestFrame frame, Duration stall_max) {
  const FrameView view{
      .head = std::as_bytes(std::span(frame.head)),
      .payload = std::as_bytes(std::span(frame.payload))};
  co_return co_await connection.send(view, stall_max);
}

inline Task<Result<TestFrame>> receive_frame(
    Connection& connection, TimePoint deadline, Duration stall_max) {
  Result<FrameHead> head = co_await connection.receive_head(deadline);
  if (!head) co_return head.error();
  TestFrame frame{.head = std::move(head->words), .payload = {}};
  frame.payload.resize(head->payload_bytes / sizeof(std::uint64_t));
  if (frame.payload.empty()) co_return frame;
  const Result<void> read = co_await connection.receive_payload(
      std::as_writable_bytes(std::span(frame.payload)), stall_max);
  if (!read) co_return read.error();
  co_return frame;
}

}  // namespace stagger
