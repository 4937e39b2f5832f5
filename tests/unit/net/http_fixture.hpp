#pragma once

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include "net/event.hpp"
#include "net/real/http_server.hpp"
#include "net/scope.hpp"

/// An HTTP server on loopback, and a client that sends any bytes it likes.
namespace stagger::http_test {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Says what it was asked; three paths do something else.
class SampleHandler final : public HttpHandler {
 public:
  explicit SampleHandler(Executor executor) : released_(std::move(executor)) {}

  Task<HttpResponse> handle(HttpRequest request) override {
    asked_.fetch_add(1);
    if (request.path == "/throw") throw std::runtime_error("a bug");
    if (request.path == "/stop") server->stop();
    if (request.path == "/wait") {
      waiting.set_value();
      co_await released_.wait();
    }
    co_return HttpResponse{
        .status = 200,
        .content_type = "text/plain",
        .body = request.method + " " + request.path + " ?" + request.query + " [" + request.body +
                "] " + request.authorization,
        .headers = {{"Allow", "GET"}},
    };
  }

  int asked() const { return asked_.load(); }

  void release() { released_.set(); }

  HttpServer* server = nullptr;
  std::promise<void> waiting;

 private:
  Event released_;
  std::atomic<int> asked_{0};
};

/// A client that sends any bytes it likes. Reads give up after ten seconds, so that no test hangs.
class Client {
 public:
  explicit Client(const Endpoint& server) : socket_(context_) {
    socket_.connect({asio::ip::make_address(server.host), server.port});
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  /// False when the server has closed the connection.
  bool send(const std::string& bytes) {
    boost::system::error_code failure;
    asio::write(socket_, asio::buffer(bytes), failure);
    return !failure;
  }

  void send_end() { socket_.shutdown(tcp::socket::shutdown_send); }

  /// One response with a Content-Length; what came, if the connection ended before.
  std::string read_response(bool with_body = true) {
    std::size_t header = std::string::npos;
    while ((header = unread_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more()) return take(unread_.size());
    }
    const std::size_t field = unread_.find("Content-Length: ");
    const std::size_t body =
        with_body && field < header ? std::stoul(unread_.substr(field + 16)) : 0;
    while (unread_.size() < header + 4 + body) {
      if (!read_more()) return take(unread_.size());
    }
    return take(header + 4 + body);
  }

  /// All that comes until the server closes; with "TIMEOUT" at the end if it does not.
  std::string read_to_end() {
    while (read_more()) {
    }
    return take(unread_.size());
  }

 private:
  bool read_more() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_.native_handle(), bytes, sizeof bytes, 0);
    if (count < 0 && errno == EAGAIN) unread_ += "TIMEOUT";
    if (count <= 0) return false;
    unread_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  std::string take(std::size_t bytes) {
    std::string text = unread_.substr(0, bytes);
    unread_.erase(0, bytes);
    return text;
  }

  asio::io_context context_;
  tcp::socket socket_;
  std::string unread_;
};

/// A server on a loop of its own thread. The destructor stops it and waits for its end.
class RunningServer {
 public:
  explicit RunningServer(HttpServerOptions options = {}) {
    server_ = std::move(HttpServer::open(context_.get_executor(), options, handler_, log_)).value();
    handler_.server = server_.get();
    endpoint_ = server_->local();
    scope_.spawn("serve", server_->serve());
    thread_ = std::thread([this]() { context_.run(); });
  }

  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  ~RunningServer() {
    on_loop([this]() {
      handler_.release();
      server_->stop();
    });
    join();
  }

  template <class Action>
  void on_loop(Action action) {
    asio::post(context_, std::move(action));
  }

  void cancel() {
    on_loop([this]() { scope_.cancel(); });
  }

  void stop() {
    on_loop([this]() { server_->stop(); });
  }

  /// Returns when serve() has ended.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::size_t tasks() const { return scope_.size(); }

  const Endpoint& endpoint() const { return endpoint_; }

  SampleHandler& handler() { return handler_; }

  /// Waits until the server has as many connections.
  void await_connections(std::size_t count) {
    while (true) {
      std::promise<std::size_t> now;
      on_loop([this, &now]() { now.set_value(server_->connections()); });
      if (now.get_future().get() == count) return;
      std::this_thread::yield();
    }
  }

 private:
  asio::io_context context_{1};
  Log log_{
      "test",
      LogLevel::error,
      []() { return std::string("0"); },
      [](std::string_view) {
      }};
  SampleHandler handler_{context_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  Endpoint endpoint_;
  TaskScope scope_{context_.get_executor(), "test"};
  std::thread thread_;
};

inline std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n";
}

inline bool is_status(const std::string& response, const std::string& status) {
  return response.starts_with("HTTP/1.1 " + status + " ");
}

inline bool ends_with_body(const std::string& response, const std::string& body) {
  return response.ends_with("\r\n\r\n" + body);
}

/// What a fresh connection is answered when it sends these bytes and no more.
inline std::string answer_to(RunningServer& server, const std::string& bytes) {
  Client client(server.endpoint());
  client.send(bytes);
  client.send_end();
  return client.read_to_end();
}

}  // namespace stagger::http_test
