#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "net/channel.hpp"
#include "net/network.hpp"
#include "net/task.hpp"
#include "ps/protocol.hpp"

namespace stagger {

/// The sending half of a connection: a bounded queue and the one coroutine that writes it out.
///
/// For:     Session and Client.
/// Owner:   either; its write_frames() runs in the owner's scope.
/// Thread:  the loop.
/// Cancel:  as the connection's send.
/// Failure: write_frames() returns the connection's error; what is queued then is lost.
class Outbox {
 public:
  struct Item {
    std::vector<std::uint64_t> head;
    // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
    std::span<const float> payload = {};     ///< borrowed …
    std::shared_ptr<const void> keep = {};   ///< … and kept alive by this, or by the owner
    std::function<void(Item&)> before = {};  ///< called right before it is written; may be empty
    std::function<void()> sent = {};  ///< called when the connection has taken it; may be empty
    // NOLINTEND(readability-redundant-member-init)
  };

  Outbox(Executor executor, Connection& connection, std::size_t items_max, Duration stall_max)
      : connection_(connection), items_(std::move(executor), items_max), stall_max_(stall_max) {}

  /// Writes until close() and the queue is empty, or the connection fails.
  Task<Result<void>> write_frames();

  /// False when the queue is full or closed.
  bool post(Item item) { return items_.try_push(std::move(item)); }

  /// Queued even when full: for control messages, which are few and small. Dropped when closed.
  void post_urgent(Item item) { items_.push_urgent(std::move(item)); }

  /// Waits for room; false when closed.
  Task<bool> send(Item item) { return items_.push(std::move(item)); }

  /// What is queued is still written.
  void close() { items_.close(); }

 private:
  Connection& connection_;
  Channel<Item> items_;
  Duration stall_max_;
};

}  // namespace stagger
