#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/http.hpp"
#include "net/task.hpp"
#include "net/time.hpp"
#include "observability/log.hpp"

namespace stagger {

/// Bounds of one HTTP connection. Durations are wall time: this is the real network.
struct HttpLimits {
  std::uint32_t header_bytes_max = 8 * 1024;  ///< request line and headers; beyond: 431
  std::uint64_t body_bytes_max = 64 * std::uint64_t{1024};  ///< beyond: 413
  Duration idle_max = 30s;      ///< between requests; then the connection is closed
  Duration request_max = 10s;   ///< from a request's first byte to its last; then it is closed
  Duration response_max = 10s;  ///< for the client to take a response; then it is closed
  Duration linger_max = 1s;     ///< for a refused client to stop sending; then it is cut
};

/// One HTTP/1.1 connection: reads requests one after the other and writes each answer before it
/// reads the next, so that pipelined requests are answered in order.
///
/// For:     HttpServer.
/// Owner:   HttpServer, until run() or refuse() has ended.
/// Thread:  the loop.
/// Cancel:  a cancelled run() closes the connection and ends, with operation_aborted if a handler
/// was under way. Failure: none that leaves: bad bytes are answered with a problem and end the
/// connection; a handler that throws is
///          logged and answered with 500.
class HttpSession {
 public:
  HttpSession(
      boost::asio::ip::tcp::socket socket, HttpLimits limits, HttpHandler& handler, Log& log);
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;
  ~HttpSession() = default;

  Task<void> run();

  /// Says why the server does not serve this connection, and closes it.
  Task<void> refuse(HttpResponse response);

  /// An answer under way is still finished; otherwise the connection is closed at once.
  void finish();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  enum class Read : std::uint8_t { complete, refused, gone };

  Task<bool> answer_one();
  Task<bool> await_first_byte();
  Task<Read> read_request();
  Task<Read> read_body();
  Read read_failed(const boost::system::error_code& failure);
  Read refuse_request(unsigned status, const std::string& detail);
  Task<HttpResponse> ask_handler(HttpRequest request);
  Task<bool> write(HttpResponse response, bool keep_alive);
  Task<void> linger();

  boost::beast::tcp_stream stream_;
  HttpLimits limits_;
  HttpHandler& handler_;
  Log& log_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::unique_ptr<Parser> parser_;  ///< of the request that is being read or answered
  HttpResponse refusal_;            ///< valid after Read::refused
  bool head_only_ = false;
  bool answering_ = false;
  bool finishing_ = false;
};

}  // namespace stagger
