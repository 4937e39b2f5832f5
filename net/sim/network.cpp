#include "net/sim/network.hpp"

#include <algorithm>
#include <utility>

#include "net/sim/tcp_connection.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

/// How often a connection attempt knocks at a node that does not answer.
constexpr Duration connect_retry = 200ms;

Error unreachable(const Endpoint& remote, std::string_view reason) {
  return Error{
      .code = Errc::unreachable,
      .detail = "cannot connect to " + to_string(remote) + ": " + std::string(reason)};
}

Error too_late(const Endpoint& remote) {
  return Error{
      .code = Errc::deadline, .detail = "cannot connect to " + to_string(remote) + " in time"};
}

bool is_wildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

}  // namespace

SimNetwork::SimNetwork(Executor executor, SimFabric& fabric, FabricNode& node)
    : executor_(std::move(executor)), fabric_(fabric), node_(node) {}

/// False when the deadline came first.
Task<bool> SimNetwork::pass_time(Duration duration, TimePoint deadline) {
  const TimePoint end = deadline_after(fabric_.clock().now(), duration);
  co_await fabric_.clock().sleep_until(std::min(end, deadline));
  co_return end <= deadline;
}

Task<Result<std::unique_ptr<Connection>>> SimNetwork::connect(
    Endpoint remote, TimePoint shown_deadline) {
  const TimePoint deadline = node_.clock.world(shown_deadline);
  FabricNode* const target = fabric_.find_node(remote.host);
  if (target == nullptr) {
    co_return Error{.code = Errc::bad_address, .detail = to_string(remote) + ": no such node"};
  }
  while (node_.clogged || target->clogged) {
    if (!co_await pass_time(connect_retry, deadline)) co_return too_late(remote);
  }
  const Duration there = SimFabric::latency(node_, *target);
  const Duration back = SimFabric::latency(*target, node_);
  if (!co_await pass_time(there, deadline)) co_return too_late(remote);
  const auto port = target->ports.find(remote.port);
  if (port == target->ports.end()) {
    if (!co_await pass_time(back, deadline)) co_return too_late(remote);
    co_return unreachable(remote, "Connection refused");
  }
  const Endpoint local{.host = node_.name, .port = node_.port_next++};
  Ends ends = fabric_.options().tcp ? segment_ends(*target, local, remote)
                                    : frame_ends(*target, local, remote);
  port->second->incoming(std::move(ends.far));
  if (!co_await pass_time(back, deadline)) co_return too_late(remote);
  co_return std::move(ends.near);
}

SimNetwork::Ends SimNetwork::frame_ends(
    FabricNode& target, const Endpoint& local, const Endpoint& remote) {
  auto near = std::make_unique<SimConnection>(executor_, fabric_, node_, to_string(remote));
  auto far = std::make_unique<SimConnection>(executor_, fabric_, target, to_string(local));
  SimConnection::pair(*near, *far);
  return {.near = std::move(near), .far = std::move(far)};
}

SimNetwork::Ends SimNetwork::segment_ends(
    FabricNode& target, const Endpoint& local, const Endpoint& remote) {
  const auto there = std::make_shared<TcpFlow>(fabric_, node_, target);
  const auto back = std::make_shared<TcpFlow>(fabric_, target, node_);
  return {
      .near = std::make_unique<SimTcpConnection>(
          executor_,
          fabric_,
          SimTcpConnection::Nodes{.own = node_, .other = target},
          SimTcpConnection::Way{.out = there, .in = back},
          to_string(remote)),
      .far = std::make_unique<SimTcpConnection>(
          executor_,
          fabric_,
          SimTcpConnection::Nodes{.own = target, .other = node_},
          SimTcpConnection::Way{.out = back, .in = there},
          to_string(local))};
}

Result<std::unique_ptr<Listener>> SimNetwork::listen(const Endpoint& local) {
  if (local.host != node_.name && !is_wildcard(local.host)) {
    return Error{
        .code = Errc::bad_address,
        .detail = "cannot listen on " + to_string(local) + ": no address of " + node_.name};
  }
  std::uint16_t port = local.port;
  while (port == 0 || (local.port == 0 && node_.ports.contains(port)))
    port = node_.port_next++;
  if (node_.ports.contains(port)) {
    return Error{
        .code = Errc::address_in_use,
        .detail = "cannot listen on " + to_string(local) +
                  ": Address already in use; choose another port or stop the other listener"};
  }
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(executor_, node_, port));
}

SimListener::SimListener(Executor executor, FabricNode& node, std::uint16_t port)
    : executor_(std::move(executor)), node_(node), port_(port) {
  FabricPort* const port_of_node = this;
  node_.ports.emplace(port_, port_of_node);
}

SimListener::~SimListener() {
  close();
}

Task<Result<std::unique_ptr<Connection>>> SimListener::accept() {
  CHECK(acceptor_ == nullptr, "two tasks accept at one listener");
  while (!closed_ && backlog_.empty()) {
    Waiter waiter(executor_);
    acceptor_ = &waiter;
    try {
      co_await waiter.wait();
      acceptor_ = nullptr;
    } catch (...) {
      acceptor_ = nullptr;
      throw;
    }
  }
  if (closed_) {
    co_return Error{.code = Errc::closed, .detail = to_string(local()) + " no longer listens"};
  }
  std::unique_ptr<Connection> connection = std::move(backlog_.front());
  backlog_.pop_front();
  co_return connection;
}

void SimListener::close() {
  if (std::exchange(closed_, true)) return;
  node_.ports.erase(port_);
  backlog_.clear();
  if (acceptor_ != nullptr) acceptor_->wake(Wake::signalled);
}

void SimListener::incoming(std::unique_ptr<Connection> connection) {
  backlog_.push_back(std::move(connection));
  if (acceptor_ != nullptr) acceptor_->wake(Wake::signalled);
}

}  // namespace stagger
