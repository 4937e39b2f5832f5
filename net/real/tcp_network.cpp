#include "net/real/tcp_network.hpp"

#include <algorithm>
#include <utility>

#include "net/real/operation.hpp"
#include "net/real/port_owner.hpp"
#include "net/real/tcp_connection.hpp"
#include "net/real/tcp_listener.hpp"

namespace stagger {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

Error connect_error(Errc code, const Endpoint& remote, const std::string& reason) {
  return Error{.code = code, .detail = "cannot connect to " + to_string(remote) + ": " + reason};
}

Error listen_error(const Endpoint& local, error_code error) {
  const std::string where = "cannot listen on " + to_string(local) + ": " + error.message();
  if (error == asio::error::address_in_use) {
    const std::string owner = describe_port_owner(local.port);
    return Error{
        .code = Errc::address_in_use,
        .detail = where + (owner.empty() ? "" : " by " + owner) +
                  "; stop that process or choose another port"};
  }
  const bool privileged = error == asio::error::access_denied && local.port < 1024;
  return Error{
      .code = Errc::bad_address,
      .detail = where + (privileged ? "; ports below 1024 need privileges" : "")};
}

/// The time until which one of `count` remaining attempts may take.
TimePoint share_of(TimePoint now, TimePoint deadline, std::size_t count) {
  if (deadline == time_point_max || deadline <= now) return deadline;
  return now + (deadline - now) / static_cast<Duration::rep>(count);
}

/// A port of our own range may be handed to the very socket that knocks at it: TCP then connects it
/// to itself.
bool connected_to_itself(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint local = socket.local_endpoint(error);
  const tcp::endpoint remote = socket.remote_endpoint(error);
  return !error && local == remote;
}

}  // namespace

TcpNetwork::TcpNetwork(asio::io_context& context, Clock& clock, Log& log, TcpOptions options)
    : context_(context), clock_(clock), log_(log), options_(options) {}

Task<Result<std::vector<tcp::endpoint>>> TcpNetwork::resolve(Endpoint remote, TimePoint deadline) {
  error_code not_numeric;
  const auto numeric = asio::ip::make_address(remote.host, not_numeric);
  if (!not_numeric) co_return std::vector<tcp::endpoint>{tcp::endpoint(numeric, remote.port)};

  tcp::resolver resolver(context_);
  Operation<tcp::resolver::results_type> lookup(context_.get_executor());
  resolver.async_resolve(remote.host, std::to_string(remote.port), lookup.handler());
  if (!co_await lookup.wait_until(clock_, deadline)) {
    co_return connect_error(Errc::deadline, remote, "the name was not resolved in time");
  }
  if (lookup.error()) {
    co_return connect_error(Errc::bad_address, remote, lookup.error().message());
  }
  std::vector<tcp::endpoint> addresses;
  for (const auto& entry : lookup.value())
    addresses.push_back(entry.endpoint());
  co_return addresses;
}

Task<Result<std::unique_ptr<Connection>>> TcpNetwork::connect(Endpoint remote, TimePoint deadline) {
  const Result<std::vector<tcp::endpoint>> addresses = co_await resolve(remote, deadline);
  if (!addresses) co_return addresses.error();
  std::string reasons;
  Errc code = Errc::unreachable;
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const TimePoint share = share_of(clock_.now(), deadline, addresses->size() - i);
    auto connection = co_await connect_address((*addresses)[i], share);
    if (connection) co_return std::move(*connection);
    code = connection.error().code;
    reasons.append(reasons.empty() ? "" : "; ").append(connection.error().detail);
  }
  co_return connect_error(code, remote, reasons);
}

Task<Result<std::unique_ptr<Connection>>> TcpNetwork::connect_address(
    Address address, TimePoint deadline) {
  tcp::socket socket(context_);
  Operation<> opening(context_.get_executor());
  socket.async_connect(address, opening.handler());
  // Leaving early closes the socket, and with it the attempt.
  if (!co_await opening.wait_until(clock_, deadline)) {
    co_return Error{
        .code = Errc::deadline, .detail = to_string(address) + " did not answer in time"};
  }
  if (opening.error()) {
    co_return Error{
        .code = Errc::unreachable, .detail = to_string(address) + ": " + opening.error().message()};
  }
  if (connected_to_itself(socket)) {
    co_return Error{
        .code = Errc::unreachable, .detail = to_string(address) + ": nobody listens there"};
  }
  co_return std::unique_ptr<Connection>(
      std::make_unique<TcpConnection>(std::move(socket), clock_, options_));
}

Result<std::unique_ptr<Listener>> TcpNetwork::listen(const Endpoint& local) {
  error_code error;
  tcp::resolver resolver(context_);
  const auto found =
      resolver.resolve(local.host, std::to_string(local.port), tcp::resolver::passive, error);
  if (error || found.empty()) return listen_error(local, error);

  const tcp::endpoint address = found.begin()->endpoint();
  tcp::acceptor acceptor(context_);
  acceptor.open(address.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(address, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return listen_error(local, error);
  return std::unique_ptr<Listener>(
      std::make_unique<TcpListener>(std::move(acceptor), clock_, log_, options_));
}

}  // namespace stagger
