#pragma once

#include <memory>
#include <string>

#include "net/network.hpp"
#include "net/sim/tcp_flow.hpp"

namespace stagger {

/// One end of a simulated connection whose frames travel as TCP segments (FabricOptions::tcp). A
/// frame's head can be read before its payload has come, and what is not read stops the sender, as
/// over net/real/tcp_connection.hpp.
class SimTcpConnection final : public Connection, private FabricStream {
 public:
  struct Way {
    std::shared_ptr<TcpFlow> out;
    std::shared_ptr<TcpFlow> in;
  };

  struct Nodes {
    FabricNode& own;
    FabricNode& other;
  };

  SimTcpConnection(Executor executor, SimFabric& fabric, Nodes nodes, Way way, std::string peer);
  ~SimTcpConnection() override;
  SimTcpConnection(const SimTcpConnection&) = delete;
  SimTcpConnection& operator=(const SimTcpConnection&) = delete;

  Task<Result<void>> send(FrameView frame, Duration stall_max) override;
  Task<Result<FrameHead>> receive_head(TimePoint deadline) override;
  Task<Result<void>> receive_payload(std::span<std::byte> target, Duration stall_max) override;
  void close() override;

  const std::string& peer() const override { return peer_; }

  LinkStats stats() const override;

 private:
  void crash() override { close(); }

  Error fail(Error error);
  Error ending();
  Task<Wake> park(Waiter** place, TimePoint deadline);

  Executor executor_;
  SimFabric& fabric_;
  Nodes nodes_;
  Way way_;
  std::string peer_;
  std::uint64_t id_;
  LinkStats counted_;
  Waiter* sender_ = nullptr;
  Waiter* receiver_ = nullptr;
  bool sending_ = false;
  bool payload_open_ = false;
  bool closed_ = false;
};

}  // namespace stagger
