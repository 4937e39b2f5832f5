#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/frame.hpp"
#include "net/network.hpp"
#include "net/sim/clock.hpp"
#include "net/sim/drop_tail_port.hpp"
#include "net/sim/link_model.hpp"
#include "net/sim/random.hpp"
#include "net/sim/tcp_sender.hpp"
#include "net/sim/trace.hpp"

namespace stagger {

struct NodeOptions {
  LinkOptions egress;
  LinkOptions ingress;
  double compute_scale = 1.0;  ///< 2 is a machine of half the speed
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  ClockView clock = {};  ///< what the node's clock says
};

struct FabricOptions {
  /// Bytes of one direction of a connection that were sent and not yet received by the peer's
  /// tasks; one frame larger than this passes alone. A peer that does not read stops its sender, as
  /// TCP's window does.
  std::uint64_t window_bytes = std::uint64_t{4} << 20;
  Duration jitter_max{0};  ///< every frame is late by a random time below this; order is kept
  std::uint64_t payload_scale = 1;  ///< wire bytes per payload byte: large models in little memory
  FrameLimits limits;
  /// Set: connections carry segments, which ports drop when their queue (the ingress link's) is
  /// full, and TCP sends them again. Not set: frames go whole and nothing is lost.
  std::optional<TcpModelOptions> tcp = std::nullopt;
};

struct SimFrame {
  std::vector<std::uint64_t> head;
  std::vector<std::byte> payload;
  std::uint64_t wire_bytes = 0;
};

/// One end of a connection, as the fabric sees it.
class FabricEnd {
 public:
  virtual void deliver(SimFrame frame) = 0;
  virtual void peer_closed() = 0;
  virtual void credit(std::uint64_t bytes) = 0;
  virtual void crash() = 0;

 protected:
  ~FabricEnd() = default;
};

/// A connection of segments, as the fabric sees it.
class FabricStream {
 public:
  virtual void crash() = 0;

 protected:
  ~FabricStream() = default;
};

/// A listener, as the fabric sees it.
class FabricPort {
 public:
  virtual void incoming(std::unique_ptr<Connection> connection) = 0;
  virtual void crash() = 0;

 protected:
  ~FabricPort() = default;
};

struct FabricNode {
  std::string name;
  std::uint64_t index = 0;
  LinkModel egress;
  LinkModel ingress;
  DropTailPort port;  ///< the ingress link, where segments are carried
  ClockView clock;
  bool clogged = false;
  std::map<std::uint64_t, FabricStream*> streams;
  std::map<std::uint16_t, FabricPort*> ports;
  std::uint16_t port_next = 49152;
};

/// The wires between the simulated nodes: who is reachable, and which frame arrives when.
///
/// Owner:   SimWorld; outlives all connections. Ends are known by number, so that what is under way
/// cannot dangle. Thread:  the one that drives the world.
class SimFabric {
 public:
  struct Carried {
    std::uint64_t packet = 0;
    TimePoint taken;
  };

  SimFabric(SimClock& clock, FabricOptions options, SimRandom random);

  const FabricOptions& options() const { return options_; }

  SimClock& clock() { return clock_; }

  TraceHash& trace() { return trace_; }

  FabricNode& add_node(const std::string& name, const NodeOptions& options);

  /// Null when there is none.
  FabricNode* find_node(const std::string& name);

  /// Time of an empty frame from one node to another, without jitter.
  static Duration latency(const FabricNode& source, const FabricNode& target);

  /// A random lateness, for what is about to be sent.
  Duration jitter();

  /// Puts the delivery of a frame to the trace.
  void record(const FabricNode& source, const FabricNode& target, const SimFrame& frame);

  std::uint64_t next_id() { return end_next_++; }

  std::uint64_t attach(FabricNode& node, FabricEnd& end);
  void detach(std::uint64_t end);
  void pair(std::uint64_t one, std::uint64_t other);

  /// Puts the frame on the wire.
  Carried carry(std::uint64_t source, SimFrame frame);

  /// The frame was cut off half-way: it uses the links and never arrives.
  void abandon(std::uint64_t packet) { packets_.erase(packet); }

  /// Tells the peer, after everything sent before.
  void hang_up(std::uint64_t source);

  /// The peer's tasks have received so much of what `receiver` got.
  void credit_peer(std::uint64_t receiver, std::uint64_t bytes);

  /// Ends all of the node's connections and listeners, as when its process is killed.
  void crash(FabricNode& node);

  /// Nothing passes to or from a clogged node; what arrives meanwhile is held and goes on
  /// afterwards.
  void set_clogged(FabricNode& node, bool clogged);

 private:
  struct End {
    FabricNode* node = nullptr;
    FabricEnd* end = nullptr;
    std::uint64_t peer = 0;
    TimePoint last_bit;
    TimePoint last_through;
  };

  struct Packet {
    std::uint64_t source_end = 0;
    std::uint64_t target_end = 0;
    FabricNode* source = nullptr;
    FabricNode* target = nullptr;
    TimePoint first_bit;
    TimePoint last_bit;
    bool closing = false;
    SimFrame frame;
  };

  std::uint64_t launch(Packet packet);
  void arrive(std::uint64_t packet);
  void deliver(std::uint64_t packet);

  SimClock& clock_;
  FabricOptions options_;
  SimRandom random_;
  TraceHash trace_;
  std::map<std::string, std::unique_ptr<FabricNode>> nodes_;
  std::map<std::uint64_t, End> ends_;
  std::map<std::uint64_t, Packet> packets_;
  std::vector<std::uint64_t> held_;
  std::uint64_t end_next_ = 1;
  std::uint64_t packet_next_ = 1;
};

}  // namespace stagger
