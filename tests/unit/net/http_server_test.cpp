#include "net/real/http_server.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/net/http_fixture.hpp"

namespace stagger {

namespace {

using http_test::answer_to;
using http_test::Client;
using http_test::ends_with_body;
using http_test::get;
using http_test::is_status;
using http_test::RunningServer;

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

}  // namespace

}  // namespace stagger
