#include "net/real/http_server.hpp"

#include <list>
#include <string>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/real/port_owner.hpp"
#include "net/scope.hpp"

namespace stagger {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr asio::use_awaitable_t<Executor> use_task;

/// Rest after an accept that failed (no descriptors left), so that the loop does not spin.
constexpr Duration accept_pause = 100ms;

Error listen_error(const Endpoint& endpoint, const error_code& reason) {
  const bool in_use = reason == asio::error::address_in_use;
  const std::string owner = in_use ? describe_port_owner(endpoint.port) : std::string();
  const std::string advice = in_use ? "; stop it, or choose another port" : "";
  return Error{
      .code = in_use ? Errc::address_in_use : Errc::bad_address,
      .detail = "cannot listen on " + to_string(endpoint) + " for HTTP: " + reason.message() +
                (owner.empty() ? "" : " by " + owner) + advice,
  };
}

Result<tcp::acceptor> listen_on(const Executor& executor, const Endpoint& endpoint) {
  error_code failure;
  tcp::resolver resolver(executor);
  const auto found = resolver.resolve(
      endpoint.host, std::to_string(endpoint.port), tcp::resolver::passive, failure);
  if (failure || found.empty()) return listen_error(endpoint, failure);
  const tcp::endpoint address = found.begin()->endpoint();
  tcp::acceptor acceptor(executor);
  acceptor.open(address.protocol(), failure);
  // A restart must not wait for the old connections' TIME_WAIT; two listeners are still refused.
  if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) acceptor.bind(address, failure);
  if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) return listen_error(endpoint, failure);
  return acceptor;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(tcp::acceptor acceptor, HttpServerOptions options, HttpHandler& handler, Log& log)
      : acceptor_(std::move(acceptor)),
        options_(std::move(options)),
        handler_(handler),
        log_(log),
        scope_(acceptor_.get_executor(), "http") {}

  Endpoint local() const {
    error_code failure;
    const tcp::endpoint address = acceptor_.local_endpoint(failure);
    if (failure) return options_.listen;
    return Endpoint{.host = address.address().to_string(), .port = address.port()};
  }

  Task<void> serve() {
    scope_.spawn("accept_connections", accept_connections());
    co_await scope_.join();
  }

  void stop() {
    if (stopping_) return;
    stopping_ = true;
    // local() goes on telling where it was.
    options_.listen = local();
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& session : sessions_)
      session->finish();
  }

  std::size_t connections() const { return sessions_.size(); }

 private:
  using Sessions = std::list<std::unique_ptr<HttpSession>>;

  /// Forgets a session whatever way its task ends.
  struct Ending {
    Ending(Sessions& all, Sessions::iterator one) : sessions(all), session(one) {}

    ~Ending() { sessions.erase(session); }

    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

    Sessions& sessions;
    Sessions::iterator session;
  };

  bool ending() const { return stopping_ || scope_.cancelled(); }

  Task<void> accept_connections() {
    while (!ending()) {
      error_code failure;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(use_task, failure));
      if (ending()) co_return;
      if (!failure) {
        admit(std::move(socket));
        continue;
      }
      log_.if_changed(
          "http_accept", LogLevel::warning, "http_accept_failed", {{"reason", failure.message()}});
      asio::steady_timer pause(acceptor_.get_executor(), accept_pause);
      co_await pause.async_wait(asio::redirect_error(use_task, failure));
    }
  }

  void admit(tcp::socket socket) {
    const std::size_t open = sessions_.size();
    if (open >= 2 * options_.connections_max) return;
    const auto session = sessions_.insert(
        sessions_.end(),
        std::make_unique<HttpSession>(std::move(socket), options_.limits, handler_, log_));
    if (open < options_.connections_max) {
      scope_.spawn("answer_requests", answer_requests(session));
    } else {
      scope_.spawn("refuse_connection", refuse_connection(session));
    }
  }

  Task<void> answer_requests(Sessions::iterator session) {
    const Ending ending(sessions_, session);
    co_await (*session)->run();
  }

  Task<void> refuse_connection(Sessions::iterator session) {
    const Ending ending(sessions_, session);
    log_.if_changed(
        "http_full",
        LogLevel::warning,
        "http_connections_max_reached",
        {{"connections_max", options_.connections_max}});
    co_await (*session)->refuse(problem(503, "too many connections; try again later"));
  }

  tcp::acceptor acceptor_;
  HttpServerOptions options_;
  HttpHandler& handler_;
  Log& log_;
  Sessions sessions_;
  TaskScope scope_;
  bool stopping_ = false;
};

Result<std::unique_ptr<HttpServer>> HttpServer::open(
    Executor executor, HttpServerOptions options, HttpHandler& handler, Log& log) {
  Result<tcp::acceptor> acceptor = listen_on(executor, options.listen);
  if (!acceptor) return acceptor.error();
  auto impl = std::make_unique<Impl>(std::move(*acceptor), std::move(options), handler, log);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

Endpoint HttpServer::local() const {
  return impl_->local();
}

Task<void> HttpServer::serve() {
  return impl_->serve();
}

void HttpServer::stop() {
  impl_->stop();
}

std::size_t HttpServer::connections() const {
  return impl_->connections();
}

}  // namespace stagger
