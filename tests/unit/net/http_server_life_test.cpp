#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "net/real/http_server.hpp"
#include "tests/unit/net/http_fixture.hpp"

namespace stagger {

namespace {

namespace asio = boost::asio;
using http_test::answer_to;
using http_test::Client;
using http_test::get;
using http_test::is_status;
using http_test::RunningServer;
using http_test::SampleHandler;

TEST(HttpServerLife, a_client_that_stays_idle_is_closed) {
  const RunningServer server({.limits = {.idle_max = 20ms}});
  Client client(server.endpoint());
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(HttpServerLife, a_client_that_drips_its_request_is_closed) {
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

TEST(HttpServerLife, a_client_that_leaves_in_the_middle_harms_nobody) {
  RunningServer server;
  for (int i = 0; i < 50; ++i) {
    Client client(server.endpoint());
    client.send("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  }
  EXPECT_TRUE(is_status(answer_to(server, get("/")), "200"));
  EXPECT_EQ(server.handler().asked(), 1);
}

TEST(HttpServerLife, too_many_connections_are_told_so) {
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

TEST(HttpServerLife, connections_beyond_twice_the_limit_are_closed_unheard) {
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

TEST(HttpServerLife, a_handler_that_throws_is_a_500_and_the_server_lives) {
  const RunningServer server;
  Client client(server.endpoint());
  client.send(get("/throw") + get("/after"));
  EXPECT_TRUE(is_status(client.read_response(), "500"));
  EXPECT_TRUE(is_status(client.read_response(), "200"));
}

TEST(HttpServerLife, answers_others_while_one_waits) {
  RunningServer server;
  Client slow(server.endpoint());
  slow.send(get("/wait"));
  server.handler().waiting.get_future().wait();
  EXPECT_TRUE(is_status(answer_to(server, get("/")), "200"));
  server.on_loop([&server]() { server.handler().release(); });
  EXPECT_TRUE(is_status(slow.read_response(), "200"));
}

TEST(HttpServerLife, stopped_from_a_handler_it_still_answers_and_then_ends) {
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

TEST(HttpServerLife, stopping_waits_for_the_answer_under_way) {
  RunningServer server;
  Client client(server.endpoint());
  client.send(get("/wait"));
  server.handler().waiting.get_future().wait();
  server.stop();
  server.on_loop([&server]() { server.handler().release(); });
  EXPECT_TRUE(is_status(client.read_to_end(), "200"));
  server.join();
}

TEST(HttpServerLife, cancelling_ends_idle_connections_and_handlers_under_way) {
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

TEST(HttpServerLife, an_address_in_use_is_an_error_that_names_it) {
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

TEST(HttpServerLife, an_address_that_is_none_is_an_error_that_names_it) {
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
