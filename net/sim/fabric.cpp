#include "net/sim/fabric.hpp"

#include <algorithm>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

SimFabric::SimFabric(SimClock& clock, FabricOptions options, SimRandom random)
    : clock_(clock), options_(options), random_(random) {
  CHECK(options_.payload_scale > 0 && options_.window_bytes > 0);
}

FabricNode& SimFabric::add_node(const std::string& name, const NodeOptions& options) {
  auto& node = nodes_[name];
  CHECK(!node, "two nodes of one name", name);
  node = std::make_unique<FabricNode>(FabricNode{
      .name = name,
      .index = nodes_.size(),
      .egress = LinkModel(options.egress),
      .ingress = LinkModel(options.ingress),
      .port = DropTailPort(
          {.rate_bits_per_second = options.ingress.rate_bits_per_second,
           .latency = options.ingress.latency,
           .queue_bytes_max = options.ingress.queue_bytes_max}),
      .clock = options.clock,
      .streams = {},
      .ports = {}});
  return *node;
}

FabricNode* SimFabric::find_node(const std::string& name) {
  const auto node = nodes_.find(name);
  return node == nodes_.end() ? nullptr : node->second.get();
}

Duration SimFabric::latency(const FabricNode& source, const FabricNode& target) {
  return source.egress.options().latency + target.ingress.options().latency;
}

std::uint64_t SimFabric::attach(FabricNode& node, FabricEnd& end) {
  const std::uint64_t id = end_next_++;
  ends_.emplace(id, End{.node = &node, .end = &end, .last_bit = {}, .last_through = {}});
  return id;
}

void SimFabric::detach(std::uint64_t end) {
  ends_.erase(end);
}

void SimFabric::pair(std::uint64_t one, std::uint64_t other) {
  ends_.at(one).peer = other;
  ends_.at(other).peer = one;
}

SimFabric::Carried SimFabric::carry(std::uint64_t source, SimFrame frame) {
  End& end = ends_.at(source);
  const auto peer = ends_.find(end.peer);
  const Transfer transfer = end.node->egress.send(frame.wire_bytes, clock_.now());
  // The peer's object may be gone while its farewell is still under way; then nothing arrives
  // anywhere.
  if (peer == ends_.end()) return Carried{.packet = 0, .taken = transfer.taken};

  FabricNode& target = *peer->second.node;
  const Duration delay = latency(*end.node, target) + jitter();
  end.last_bit = std::max(end.last_bit, transfer.end + delay);
  const std::uint64_t packet = launch(Packet{
      .source_end = source,
      .target_end = end.peer,
      .source = end.node,
      .target = &target,
      .first_bit = std::min(transfer.begin + delay, end.last_bit),
      .last_bit = end.last_bit,
      .frame = std::move(frame)});
  return Carried{.packet = packet, .taken = transfer.taken};
}

Duration SimFabric::jitter() {
  if (options_.jitter_max == Duration{0}) return Duration{0};
  return from_seconds(to_seconds(options_.jitter_max) * random_.uniform());
}

void SimFabric::hang_up(std::uint64_t source) {
  const End& end = ends_.at(source);
  const auto peer = ends_.find(end.peer);
  if (peer == ends_.end()) return;
  FabricNode& target = *peer->second.node;
  const TimePoint arrival = std::max(end.last_bit, clock_.now() + latency(*end.node, target));
  launch(Packet{
      .source_end = source,
      .target_end = end.peer,
      .source = end.node,
      .target = &target,
      .first_bit = arrival,
      .last_bit = arrival,
      .closing = true,
      .frame = {}});
}

std::uint64_t SimFabric::launch(Packet packet) {
  const std::uint64_t id = packet_next_++;
  const TimePoint last_bit = packet.last_bit;
  packets_.emplace(id, std::move(packet));
  clock_.call_at(last_bit, [this, id] { arrive(id); });
  return id;
}

void SimFabric::arrive(std::uint64_t packet) {
  const auto found = packets_.find(packet);
  if (found == packets_.end()) return;
  const Packet& arrived = found->second;
  if (arrived.source->clogged || arrived.target->clogged) {
    held_.push_back(packet);
    return;
  }
  const auto target = ends_.find(arrived.target_end);
  TimePoint through = clock_.now();
  if (!arrived.closing) {
    // A packet that was held arrives when the way is free again.
    const TimePoint first = arrived.last_bit < through ? through : arrived.first_bit;
    through = arrived.target->ingress.receive(arrived.frame.wire_bytes, first, through);
  }
  if (target != ends_.end()) {
    through = std::max(through, target->second.last_through);
    target->second.last_through = through;
  }
  clock_.call_at(through, [this, packet] { deliver(packet); });
}

void SimFabric::deliver(std::uint64_t packet) {
  auto node = packets_.extract(packet);
  if (node.empty()) return;
  Packet& arrived = node.mapped();
  const auto target = ends_.find(arrived.target_end);
  if (target == ends_.end()) return;
  record(*arrived.source, *arrived.target, arrived.frame);
  if (arrived.closing) {
    target->second.end->peer_closed();
  } else {
    target->second.end->deliver(std::move(arrived.frame));
  }
}

void SimFabric::record(const FabricNode& source, const FabricNode& target, const SimFrame& frame) {
  trace_.add(static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()));
  trace_.add(source.index);
  trace_.add(target.index);
  trace_.add(std::uint64_t{frame.head.size()});
  trace_.add(std::uint64_t{frame.payload.size()});
  trace_.add(std::as_bytes(std::span(frame.head)));
}

void SimFabric::credit_peer(std::uint64_t receiver, std::uint64_t bytes) {
  const auto peer = ends_.find(ends_.at(receiver).peer);
  if (peer != ends_.end()) peer->second.end->credit(bytes);
}

void SimFabric::crash(FabricNode& node) {
  for (auto& [id, end] : ends_) {
    if (end.node == &node) end.end->crash();
  }
  for (const auto& [number, stream] : node.streams)
    stream->crash();
  const auto ports = node.ports;  // a crashing listener takes itself out of the node's
  for (const auto& [number, port] : ports)
    port->crash();
}

void SimFabric::set_clogged(FabricNode& node, bool clogged) {
  node.clogged = clogged;
  if (clogged) return;
  for (const std::uint64_t packet : std::exchange(held_, {}))
    arrive(packet);
}

}  // namespace stagger
