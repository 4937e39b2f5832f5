#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/event.hpp"
#include "net/network.hpp"
#include "net/scope.hpp"
#include "net/task.hpp"
#include "observability/catalog.hpp"
#include "ps/buffer_pool.hpp"
#include "ps/center.hpp"
#include "ps/outbox.hpp"
#include "ps/protocol.hpp"

namespace stagger {

class Server;

/// The server's side of one connected worker.
///
/// For:     Server.
/// Owner:   Server; lives until its run() has returned.
/// Thread:  the loop.
/// Cancel:  closes the connection.
/// Failure: run() never throws for what a peer did: it returns the reason for which the connection
/// ended.
///
/// Tasks: read_requests (run's own), write_frames, send_heartbeats.
class Session {
 public:
  Session(Server& server, std::unique_ptr<Connection> connection);

  /// Hello to last message. Returns why it ended.
  Task<std::string> run();

  /// Queues a control message. A worker that does not read loses its connection.
  void post(const Message& message);

  /// Queues a chunk of the center; the snapshot lives until it has left. `in_turn`: the server
  /// hears of it then.
  void post_center(const ChunkHead& head, const Center::Snapshot& snapshot, bool in_turn);

  /// Keeps a chunk of the joining center until send_joining(), which queues the first that is kept;
  /// the server hears when it has left.
  void hold_joining(const ChunkHead& head, const Center::Snapshot& snapshot);
  void send_joining();

  /// Offer the held chunk again, or read the push that waits.
  void retry() { retry_.set(); }

  /// Asks the worker for so many bytes; the server hears when they have come. An earlier question
  /// is still answered. REQUIRES a multiple of 8.
  void ask_probe(const Probe& probe);

  /// What is queued is still sent (within the stall limit); then the connection closes.
  void finish() { outbox_.close(); }

  /// A payload is coming (the connection watches for stalls) or a chunk is held: not reading
  /// heartbeats is no silence.
  bool busy() const { return busy_; }

 private:
  Task<std::string> read_requests();
  Task<std::optional<std::string>> greet();
  Task<void> write_frames();
  Task<void> send_heartbeats();
  Task<std::optional<std::string>> handle(FrameHead frame, Message message);
  Task<std::optional<std::string>> receive_chunk(FrameHead frame, ChunkHead head);
  Task<void> begin_push(RoundId round);
  Task<std::optional<std::string>> receive_probe(FrameHead frame, Probe probe);
  Task<void> place(ChunkId id, ChunkBuffer values);
  std::optional<std::string> handle_control(Message message);
  std::optional<std::string> answer(const Ping& ping);
  void answer_repeated(ChunkId id);
  void count_chunk(ChunkId id);
  Outbox::Item center_item(const ChunkHead& head, const Center::Snapshot& snapshot) const;
  std::string why_ended(const Error& error);
  std::string refuse(RefusalReason reason, const std::string& why);

  Server& server_;
  std::unique_ptr<Connection> connection_;
  Outbox outbox_;
  std::deque<Outbox::Item> joining_;
  TaskScope scope_;
  Event retry_;
  std::optional<WorkerId> worker_;
  Incarnation incarnation_;
  std::map<RoundId, std::uint32_t> receiving_;  ///< chunks that have come of each push under way
  TimePoint read_at_;                           ///< the head that was read last
  bool pong_queued_ = false;
  std::deque<Probe> probes_;  ///< asked for and not yet answered
  bool farewell_ = false;
  bool busy_ = false;
};

}  // namespace stagger
