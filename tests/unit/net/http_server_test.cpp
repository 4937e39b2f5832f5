#include "net/real/http_server.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "net/event.hpp"
#include "net/scope.hpp"

namespace stagger {

namespace {

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

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n";
}

bool is_status(const std::string& response, const std::string& status) {
  return response.starts_with("HTTP/1.1 " + status + " ");
}

bool ends_with_body(const std::string& response, const std::string& body) {
  return response.ends_with("\r\n\r\n" + body);
}

/// What a fresh connection is answered when it sends these bytes and no more.
std::string answer_to(RunningServer& server, const std::string& bytes) {
  Client client(server.endpoint());
  client.send(bytes);
  client.send_end();
  return client.read_to_end();
}

TEST(HttpServer, answers_with_what_the_handler_says) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send(get("/v1/plan?full=1"));
  const std::string response = client.read_response();
  EXPECT_TRUE(is_status(response, "200")) << response;
  EXPECT_TRUE(ends_with_body(response, "GET /v1/plan ?full=1 [] ")) << response;
  EXPECT_NE(response.find("Content-Type: text/plain\r\n"), std::string::npos) << response;
  EXPECT_NE(response.find("Allow: GET\r\n"), std::string::npos) << response;
  EXPECT_NE(response.find("Cache-Control: no-store\r\n"), std::string::npos) << response;
}

TEST(HttpServer, keeps_the_connection_for_further_requests) {
  RunningServer server;
  Client client(server.endpoint());
  for (int i = 0; i < 3; ++i) {
    client.send(get("/" + std::to_string(i)));
    EXPECT_TRUE(ends_with_body(client.read_response(), "GET /" + std::to_string(i) + " ? [] "));
  }
  EXPECT_EQ(server.handler().asked(), 3);
}

TEST(HttpServer, answers_pipelined_requests_in_order) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send(get("/1") + "PUT /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" + get("/3"));
  EXPECT_TRUE(ends_with_body(client.read_response(), "GET /1 ? [] "));
  EXPECT_TRUE(ends_with_body(client.read_response(), "PUT /2 ? [abc] "));
  EXPECT_TRUE(ends_with_body(client.read_response(), "GET /3 ? [] "));
}

TEST(HttpServer, closes_when_the_client_asks_for_it) {
  RunningServer server;
  Client client(server.endpoint());
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + get("/never"));
  const std::string all = client.read_to_end();
  EXPECT_TRUE(ends_with_body(all, "GET / ? [] ")) << all;
  EXPECT_EQ(server.handler().asked(), 1);
}

TEST(HttpServer, serves_http_1_0_without_a_host) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send("GET /old HTTP/1.0\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_TRUE(ends_with_body(all, "GET /old ? [] ")) << all;
}

TEST(HttpServer, head_has_the_length_of_the_body_but_no_body) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n" + get("/y"));
  const std::string head = client.read_response(false);
  EXPECT_TRUE(is_status(head, "200")) << head;
  EXPECT_NE(head.find("Content-Length: 12\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  EXPECT_TRUE(ends_with_body(client.read_response(), "GET /y ? [] "));
}

TEST(HttpServer, reads_chunked_bodies) {
  RunningServer server;
  const std::string response = answer_to(
      server,
      "PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(ends_with_body(response, "PUT /x ? [abcde] ")) << response;
}

TEST(HttpServer, takes_the_absolute_form_and_the_authorization) {
  RunningServer server;
  const std::string response =
      answer_to(server, "GET http://h/a?b HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n\r\n");
  EXPECT_TRUE(ends_with_body(response, "GET /a ?b [] Bearer x")) << response;
}

TEST(HttpServer, lets_a_client_ask_before_it_sends_the_body) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send("PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_response(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_TRUE(ends_with_body(client.read_response(), "PUT /x ? [ok] "));
}

TEST(HttpServer, garbage_is_answered_with_a_problem_and_the_connection_ends) {
  RunningServer server;
  for (const std::string& bytes : std::vector<std::string>{
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // a TLS hello
           std::string("hello\r\n\r\n"),
           std::string("GET / HTTP/9.9\r\n\r\n"),
           std::string("GET /\r\n\r\n"),
           std::string("GET / HTTP/1.1\nHost: h\n\n"),
           std::string("GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n")}) {
    const std::string response = answer_to(server, bytes + get("/next"));
    EXPECT_TRUE(is_status(response, "400")) << bytes << " got " << response;
    EXPECT_NE(response.find("application/problem+json"), std::string::npos) << response;
    EXPECT_NE(response.find("Connection: close"), std::string::npos) << response;
  }
  EXPECT_EQ(server.handler().asked(), 0);
}

TEST(HttpServer, a_request_whose_end_is_in_doubt_is_refused) {
  RunningServer server;
  const std::string put = "PUT /x HTTP/1.1\r\nHost: h\r\n";
  const std::string chunks = "\r\n3\r\nabc\r\n0\r\n\r\n";
  const std::vector<std::string> shapes{
      put + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n" + chunks,
      put + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n" + chunks,
      put + "Transfer-Encoding: gzip, chunked\r\n" + chunks,
      put + "Transfer-Encoding: chunked, identity\r\n" + chunks,
      put + "Transfer-Encoding: xchunked\r\n" + chunks,
      put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + chunks,
      put + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n" + chunks,
      put + "Transfer-Encoding : chunked\r\n" + chunks,
      put + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      put + "Content-Length: -3\r\n\r\nabc",
      put + "Content-Length: 3x\r\n\r\nabc",
      put + "Content-Length: 99999999999999999999999\r\n\r\nabc",
      put + "Transfer-Encoding: chunked\r\n\r\nZ\r\nabc\r\n0\r\n\r\n",
      put + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
      "PUT /x HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" + chunks};
  for (const std::string& bytes : shapes) {
    const std::string response = answer_to(server, bytes + get("/smuggled"));
    EXPECT_TRUE(is_status(response, "400")) << bytes << "\ngot\n" << response;
    EXPECT_EQ(response.find("smuggled"), std::string::npos) << bytes;
  }
  EXPECT_EQ(server.handler().asked(), 0);
}

TEST(HttpServer, a_request_without_exactly_one_host_is_refused) {
  RunningServer server;
  EXPECT_TRUE(is_status(answer_to(server, "GET / HTTP/1.1\r\n\r\n"), "400"));
  EXPECT_TRUE(is_status(answer_to(server, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "400"));
  EXPECT_TRUE(is_status(answer_to(server, "GET x HTTP/1.1\r\nHost: a\r\n\r\n"), "400"));
}

TEST(HttpServer, pages_of_another_origin_may_not_change_anything) {
  RunningServer server;
  const std::string head = "POST /v1/pause HTTP/1.1\r\nHost: a:1\r\nContent-Length: 0\r\n";
  EXPECT_TRUE(is_status(answer_to(server, head + "Origin: http://evil\r\n\r\n"), "403"));
  EXPECT_TRUE(is_status(answer_to(server, head + "Origin: null\r\n\r\n"), "403"));
  EXPECT_TRUE(is_status(answer_to(server, head + "Origin: http://a:1\r\n\r\n"), "200"));
  EXPECT_TRUE(is_status(answer_to(server, head + "\r\n"), "200"));
}

TEST(HttpServer, a_body_over_the_limit_is_refused_before_it_is_read) {
  RunningServer server({.limits = {.body_bytes_max = 1000}});
  Client client(server.endpoint());
  client.send("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n");
  client.send(std::string(100000, 'x'));
  const std::string response = client.read_response();
  EXPECT_TRUE(is_status(response, "413")) << response;
  EXPECT_NE(response.find("1000 bytes"), std::string::npos) << response;
  EXPECT_EQ(server.handler().asked(), 0);
}

TEST(HttpServer, a_chunked_body_over_the_limit_is_refused) {
  const RunningServer server({.limits = {.body_bytes_max = 1000}});
  Client client(server.endpoint());
  client.send("PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 8; ++i)
    client.send("100\r\n" + std::string(256, 'x') + "\r\n");
  EXPECT_TRUE(is_status(client.read_response(), "413"));
}

TEST(HttpServer, a_body_of_exactly_the_limit_is_taken) {
  RunningServer server({.limits = {.body_bytes_max = 1000}});
  const std::string body(1000, 'x');
  const std::string response =
      answer_to(server, "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + body);
  EXPECT_TRUE(ends_with_body(response, "PUT /x ? [" + body + "] ")) << response;
}

TEST(HttpServer, headers_over_the_limit_are_refused) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(is_status(client.read_response(), "431"));
  Client endless(server.endpoint());
  endless.send("GET /" + std::string(200000, 'x'));
  EXPECT_TRUE(is_status(endless.read_response(), "431"));
}

TEST(HttpServer, a_client_that_stays_idle_is_closed) {
  const RunningServer server({.limits = {.idle_max = 20ms}});
  Client client(server.endpoint());
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(HttpServer, a_client_that_drips_its_request_is_closed) {
  RunningServer server({.limits = {.request_max = 50ms}});
  Client client(server.endpoint());
  bool open = true;
  for (int i = 0; open && i < 1000; ++i) {
    open = client.send(i == 0 ? "GET /" : "x");
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(server.handler().asked(), 0);
}

TEST(HttpServer, a_client_that_leaves_in_the_middle_harms_nobody) {
  RunningServer server;
  for (int i = 0; i < 50; ++i) {
    Client client(server.endpoint());
    client.send("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  }
  EXPECT_TRUE(is_status(answer_to(server, get("/")), "200"));
  EXPECT_EQ(server.handler().asked(), 1);
}

TEST(HttpServer, too_many_connections_are_told_so) {
  RunningServer server({.connections_max = 3});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(server.endpoint()));
    clients.back()->send(get("/"));
    EXPECT_TRUE(is_status(clients.back()->read_response(), "200"));
  }
  {
    Client refused(server.endpoint());
    refused.send(get("/"));
    EXPECT_TRUE(is_status(refused.read_to_end(), "503"));
  }
  clients.pop_back();
  server.await_connections(2);
  Client welcome(server.endpoint());
  welcome.send(get("/"));
  EXPECT_TRUE(is_status(welcome.read_response(), "200"));
}

TEST(HttpServer, connections_beyond_twice_the_limit_are_closed_unheard) {
  RunningServer server({.connections_max = 1, .limits = {.linger_max = 60s}});
  const Client served(server.endpoint());
  server.await_connections(1);
  Client refused(server.endpoint());
  EXPECT_TRUE(is_status(refused.read_response(), "503"));
  // `refused` has not closed its side yet, so the server still has both.
  Client unheard(server.endpoint());
  unheard.send(get("/"));
  EXPECT_EQ(unheard.read_to_end(), "");
}

TEST(HttpServer, a_handler_that_throws_is_a_500_and_the_server_lives) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send(get("/throw") + get("/after"));
  EXPECT_TRUE(is_status(client.read_response(), "500"));
  EXPECT_TRUE(is_status(client.read_response(), "200"));
}

TEST(HttpServer, answers_others_while_one_waits) {
  RunningServer server;
  Client slow(server.endpoint());
  slow.send(get("/wait"));
  server.handler().waiting.get_future().wait();
  EXPECT_TRUE(is_status(answer_to(server, get("/")), "200"));
  server.on_loop([&server]() { server.handler().release(); });
  EXPECT_TRUE(is_status(slow.read_response(), "200"));
}

TEST(HttpServer, stopped_from_a_handler_it_still_answers_and_then_ends) {
  RunningServer server;
  Client idle(server.endpoint());
  idle.send(get("/"));
  EXPECT_TRUE(is_status(idle.read_response(), "200"));
  Client client(server.endpoint());
  client.send(get("/stop"));
  const std::string response = client.read_to_end();
  EXPECT_TRUE(is_status(response, "200")) << response;
  EXPECT_NE(response.find("Connection: close"), std::string::npos) << response;
  EXPECT_EQ(idle.read_to_end(), "");
  server.join();
  EXPECT_EQ(server.tasks(), 0U);
}

TEST(HttpServer, stopping_waits_for_the_answer_under_way) {
  RunningServer server;
  Client client(server.endpoint());
  client.send(get("/wait"));
  server.handler().waiting.get_future().wait();
  server.stop();
  server.on_loop([&server]() { server.handler().release(); });
  EXPECT_TRUE(is_status(client.read_to_end(), "200"));
  server.join();
}

TEST(HttpServer, cancelling_ends_idle_connections_and_handlers_under_way) {
  RunningServer server;
  Client idle(server.endpoint());
  Client half(server.endpoint());
  half.send("GET / HT");
  Client waiting(server.endpoint());
  waiting.send(get("/wait"));
  server.handler().waiting.get_future().wait();
  server.await_connections(3);
  server.cancel();
  server.join();
  EXPECT_EQ(server.tasks(), 0U);
  EXPECT_EQ(waiting.read_to_end(), "");
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(half.read_to_end(), "");
}

TEST(HttpServer, an_address_in_use_is_an_error_that_names_it) {
  const RunningServer server;
  asio::io_context context;
  SampleHandler handler(context.get_executor());
  Log log("test", LogLevel::error, []() { return std::string("0"); }, [](std::string_view) {});
  const auto second =
      HttpServer::open(context.get_executor(), {.listen = server.endpoint()}, handler, log);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::address_in_use);
  EXPECT_NE(second.error().detail.find(to_string(server.endpoint())), std::string::npos)
      << second.error().detail;
}

TEST(HttpServer, an_address_that_is_none_is_an_error_that_names_it) {
  asio::io_context context;
  SampleHandler handler(context.get_executor());
  Log log("test", LogLevel::error, []() { return std::string("0"); }, [](std::string_view) {});
  // 192.0.2.1 is set aside for documentation: no machine has it.
  const auto server = HttpServer::open(
      context.get_executor(), {.listen = {.host = "192.0.2.1", .port = 0}}, handler, log);
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().code, Errc::bad_address);
  EXPECT_NE(server.error().detail.find("192.0.2.1:0"), std::string::npos) << server.error().detail;
}

}  // namespace

}  // namespace stagger
