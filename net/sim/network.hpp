#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "net/network.hpp"
#include "net/sim/fabric.hpp"

namespace stagger {

/// Connections over the fabric's links, by node name: "ps-0:7000". Behaves as
/// net/real/tcp_network.hpp does.
///
/// A node listens under its own name, or under "0.0.0.0" or "::".
class SimNetwork final : public Network {
 public:
  SimNetwork(Executor executor, SimFabric& fabric, FabricNode& node);

  Task<Result<std::unique_ptr<Connection>>> connect(
      Endpoint remote, TimePoint shown_deadline) override;
  Result<std::unique_ptr<Listener>> listen(const Endpoint& local) override;

 private:
  struct Ends {
    std::unique_ptr<Connection> near;
    std::unique_ptr<Connection> far;
  };

  Task<bool> pass_time(Duration duration, TimePoint deadline);
  Ends frame_ends(FabricNode& target, const Endpoint& local, const Endpoint& remote);
  Ends segment_ends(FabricNode& target, const Endpoint& local, const Endpoint& remote);

  Executor executor_;
  SimFabric& fabric_;
  FabricNode& node_;
};

/// One end of a simulated connection.
class SimConnection final : public Connection, private FabricEnd {
 public:
  SimConnection(Executor executor, SimFabric& fabric, FabricNode& node, std::string peer);
  ~SimConnection() override;
  SimConnection(const SimConnection&) = delete;
  SimConnection& operator=(const SimConnection&) = delete;

  Task<Result<void>> send(FrameView frame, Duration stall_max) override;
  Task<Result<FrameHead>> receive_head(TimePoint deadline) override;
  Task<Result<void>> receive_payload(std::span<std::byte> target, Duration stall_max) override;
  void close() override;

  const std::string& peer() const override { return peer_; }

  LinkStats stats() const override { return stats_; }

  /// Joins two ends.
  static void pair(SimConnection& one, SimConnection& other);

 private:
  void deliver(SimFrame frame) override;
  void peer_closed() override;
  void credit(std::uint64_t bytes) override;

  void crash() override { close(); }

  bool ended() const { return closed_ || peer_closed_; }

  Error fail(Error error);
  Error ending();
  Task<Wake> park(Waiter** place, TimePoint deadline);
  Task<Result<void>> wait_for_room(std::uint64_t bytes, Duration stall_max);
  Result<FrameHead> take_head();

  Executor executor_;
  SimFabric& fabric_;
  FabricNode& node_;
  std::string peer_;
  std::uint64_t id_;
  LinkStats stats_;
  std::deque<SimFrame> inbox_;
  std::optional<std::vector<std::byte>> payload_;
  std::uint64_t in_flight_bytes_ = 0;
  std::uint64_t sending_ = 0;
  Waiter* sender_ = nullptr;
  Waiter* receiver_ = nullptr;
  bool closed_ = false;
  bool peer_closed_ = false;
};

class SimListener final : public Listener, private FabricPort {
 public:
  SimListener(Executor executor, FabricNode& node, std::uint16_t port);
  ~SimListener() override;
  SimListener(const SimListener&) = delete;
  SimListener& operator=(const SimListener&) = delete;

  Task<Result<std::unique_ptr<Connection>>> accept() override;

  Endpoint local() const override { return Endpoint{.host = node_.name, .port = port_}; }

  void close() override;

 private:
  void incoming(std::unique_ptr<Connection> connection) override;

  void crash() override { close(); }

  Executor executor_;
  FabricNode& node_;
  std::uint16_t port_;
  std::deque<std::unique_ptr<Connection>> backlog_;
  Waiter* acceptor_ = nullptr;
  bool closed_ = false;
};

}  // namespace stagger
