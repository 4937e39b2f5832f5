#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/error.hpp"
#include "net/http.hpp"
#include "net/network.hpp"
#include "net/real/http_session.hpp"
#include "net/task.hpp"
#include "observability/log.hpp"

namespace stagger {

struct HttpServerOptions {
  Endpoint listen{.host = "127.0.0.1", .port = 0};
  /// Beyond it a client is told 503; beyond twice that many it is closed unheard.
  std::size_t connections_max = 64;
  HttpLimits limits{};
};

/// Serves HTTP/1.1 on a TCP port: what is asked goes to an HttpHandler, what is wrong is answered
/// by itself.
///
/// For:     the control API, metrics and the live page.
/// Owner:   main or the server process; handler and log outlive it. Destroyed after serve() has
/// returned. Thread:  the loop. Cancel:  cancelling serve() closes all connections, cancels
/// handlers under way, and waits for them. Failure: open() says address_in_use or bad_address,
/// naming the address. Nothing that a client does ends serve().
class HttpServer {
 public:
  /// Listens from here on.
  static Result<std::unique_ptr<HttpServer>> open(
      Executor executor, HttpServerOptions options, HttpHandler& handler, Log& log);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Where it listens, with the real port.
  Endpoint local() const;

  /// Accepts and answers until stop() and the end of all answers under way. Called once.
  Task<void> serve();

  /// Accepts no more, closes idle connections, lets answers under way finish. May be called by a
  /// handler. Idempotent.
  void stop();

  /// Connections that are open now.
  std::size_t connections() const;

 private:
  class Impl;

  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stagger
