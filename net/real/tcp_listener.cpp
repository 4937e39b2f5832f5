#include "net/real/tcp_listener.hpp"

#include <utility>

#include "net/real/operation.hpp"
#include "net/real/tcp_connection.hpp"

namespace stagger {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr Duration accept_retry = 100ms;

}  // namespace

TcpListener::TcpListener(tcp::acceptor acceptor, Clock& clock, Log& log, const TcpOptions& options)
    : acceptor_(std::move(acceptor)), clock_(clock), log_(log), options_(options) {
  const tcp::endpoint address = acceptor_.local_endpoint();
  local_ = Endpoint{.host = address.address().to_string(), .port = address.port()};
}

TcpListener::~TcpListener() {
  close();
}

Task<Result<std::unique_ptr<Connection>>> TcpListener::accept() {
  while (!closed_) {
    Operation<tcp::socket> arrival(acceptor_.get_executor());
    acceptor_.async_accept(arrival.handler());
    try {
      co_await arrival.wait();
    } catch (...) {
      if (!closed_) acceptor_.cancel();
      throw;
    }
    if (closed_) break;
    if (!arrival.error()) {
      co_return std::unique_ptr<Connection>(
          std::make_unique<TcpConnection>(std::move(arrival.value()), clock_, options_));
    }
    // Either that one peer has gone again, or the system is out of something for a while.
    if (arrival.error() == asio::error::connection_aborted) continue;
    log_.if_changed(
        "accept " + to_string(local_),
        LogLevel::warning,
        "cannot accept",
        {{"address", to_string(local_)}, {"reason", arrival.error().message()}});
    co_await clock_.sleep_until(clock_.now() + accept_retry);
  }
  co_return Error{.code = Errc::closed, .detail = to_string(local_) + " no longer listens"};
}

void TcpListener::close() {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  acceptor_.close(ignored);
}

}  // namespace stagger
