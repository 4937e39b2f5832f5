#include "net/real/http_session.hpp"

#include <exception>
#include <string_view>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "net/network.hpp"

namespace stagger {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr asio::use_awaitable_t<Executor> use_task;

/// Room for the largest header that the limits allow, and for reading bodies in decent pieces.
constexpr std::size_t buffer_bytes_max = 64 * std::size_t{1024};

std::string address_of(const asio::ip::tcp::socket& socket) {
  error_code failure;
  const asio::ip::tcp::endpoint remote = socket.remote_endpoint(failure);
  if (failure) return "unknown";
  return to_string(Endpoint{.host = remote.address().to_string(), .port = remote.port()});
}

std::string to_std(beast::string_view text) {
  return {text.data(), text.size()};
}

/// What the request line asks for, with "http://host" of the absolute form taken away. Empty when
/// it is no path.
std::string_view path_and_query(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find('/', scheme.size());
    target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  return target.starts_with('/') ? target : std::string_view();
}

using Message = http::request<http::string_body>;

/// Why the framing of a request cannot be trusted; empty when it can. Two servers that disagree on
/// where a body ends let a client smuggle a request past one of them, so there is exactly one way
/// to say it.
std::string framing_fault(const Message& message) {
  const auto coding = message.find(http::field::transfer_encoding);
  if (coding != message.end()) {
    if (message.version() < 11) return "Transfer-Encoding needs HTTP/1.1";
    if (!beast::iequals(coding->value(), "chunked")) return "the only transfer coding is chunked";
  }
  if (message.version() >= 11 && message.count(http::field::host) != 1) {
    return "exactly one Host header is needed";
  }
  if (path_and_query(to_std(message.target())).empty()) return "the request target is no path";
  return {};
}

/// A web page of another origin must not steer the run through the browser of whoever looks at it.
bool is_foreign(const Message& message) {
  if (message.method() == http::verb::get || message.method() == http::verb::head) return false;
  const auto origin = message.find(http::field::origin);
  if (origin == message.end()) return false;
  const std::string text = to_std(origin->value());
  const std::size_t scheme = text.find("://");
  return scheme == std::string::npos ||
         text.substr(scheme + 3) != to_std(message[http::field::host]);
}

HttpRequest to_request(Message message, const std::string& peer) {
  const std::string target(path_and_query(to_std(message.target())));
  const std::size_t mark = target.find('?');
  const bool is_head = message.method() == http::verb::head;
  return HttpRequest{
      .method = is_head ? "GET" : to_std(message.method_string()),
      .path = target.substr(0, mark),
      .query = mark == std::string::npos ? std::string() : target.substr(mark + 1),
      .body = std::move(message.body()),
      .peer = peer,
      .authorization = to_std(message[http::field::authorization]),
  };
}

http::response<http::string_body> to_message(HttpResponse response, bool keep_alive) {
  http::response<http::string_body> message;
  message.version(11);
  message.result(response.status);
  message.set(http::field::content_type, response.content_type);
  message.set(http::field::cache_control, "no-store");
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  message.keep_alive(keep_alive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  return message;
}

}  // namespace

HttpSession::HttpSession(
    asio::ip::tcp::socket socket, HttpLimits limits, HttpHandler& handler, Log& log)
    : stream_(std::move(socket)),
      limits_(limits),
      handler_(handler),
      log_(log),
      peer_(address_of(stream_.socket())),
      buffer_(buffer_bytes_max) {}

Task<void> HttpSession::run() {
  bool open = true;
  while (open)
    open = co_await answer_one();
  stream_.close();
}

Task<void> HttpSession::refuse(HttpResponse response) {
  const bool sent = co_await write(std::move(response), false);
  if (sent) co_await linger();
  stream_.close();
}

void HttpSession::finish() {
  finishing_ = true;
  if (!answering_) stream_.close();
}

/// False when the connection has come to its end.
Task<bool> HttpSession::answer_one() {
  const bool arriving = co_await await_first_byte();
  if (!arriving) co_return false;
  const Read read = co_await read_request();
  if (read == Read::gone || finishing_) co_return false;
  answering_ = true;
  if (read == Read::refused) {
    const bool sent = co_await write(std::move(refusal_), false);
    if (sent) co_await linger();
    co_return false;
  }
  const bool keep_alive = parser_->keep_alive();
  HttpResponse response = co_await ask_handler(to_request(parser_->release(), peer_));
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) co_return false;
  const bool sent = co_await write(std::move(response), keep_alive && !finishing_);
  answering_ = false;
  co_return sent&& keep_alive && !finishing_;
}

Task<bool> HttpSession::await_first_byte() {
  if (buffer_.size() > 0) co_return true;  // pipelined
  stream_.expires_after(limits_.idle_max);
  error_code failure;
  const std::size_t bytes = co_await stream_.async_read_some(
      buffer_.prepare(limits_.header_bytes_max), asio::redirect_error(use_task, failure));
  buffer_.commit(bytes);
  co_return !failure;
}

Task<HttpSession::Read> HttpSession::read_request() {
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(limits_.header_bytes_max);
  parser_->body_limit(limits_.body_bytes_max);
  head_only_ = false;
  stream_.expires_after(limits_.request_max);
  error_code failure;
  co_await http::async_read_header(
      stream_, buffer_, *parser_, asio::redirect_error(use_task, failure));
  if (failure) co_return read_failed(failure);
  head_only_ = parser_->get().method() == http::verb::head;
  const std::string fault = framing_fault(parser_->get());
  if (!fault.empty()) co_return refuse_request(400, fault);
  if (is_foreign(parser_->get())) {
    co_return refuse_request(403, "a page of another origin may only read");
  }
  const Read read = co_await read_body();
  co_return read;
}

Task<HttpSession::Read> HttpSession::read_body() {
  error_code failure;
  const bool is_asking = beast::iequals(parser_->get()[http::field::expect], "100-continue");
  if (is_asking && parser_->get().version() >= 11) {
    const std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await asio::async_write(
        stream_, asio::buffer(go_on), asio::redirect_error(use_task, failure));
    if (failure) co_return Read::gone;
  }
  co_await http::async_read(stream_, buffer_, *parser_, asio::redirect_error(use_task, failure));
  co_return failure ? read_failed(failure) : Read::complete;
}

HttpSession::Read HttpSession::read_failed(const error_code& failure) {
  const std::string bytes_max = std::to_string(limits_.body_bytes_max);
  if (failure == http::error::body_limit) {
    return refuse_request(413, "a body may have " + bytes_max + " bytes");
  }
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
    return refuse_request(
        431, "headers may have " + std::to_string(limits_.header_bytes_max) + " bytes");
  }
  const bool is_end =
      failure == http::error::end_of_stream || failure == http::error::partial_message;
  if (!is_end && failure.category() == make_error_code(http::error::bad_method).category()) {
    return refuse_request(400, "this is no HTTP request: " + failure.message());
  }
  return Read::gone;
}

HttpSession::Read HttpSession::refuse_request(unsigned status, const std::string& detail) {
  log_.info("http_refused", {{"peer", peer_}, {"status", status}, {"reason", detail}});
  refusal_ = problem(status, detail);
  return Read::refused;
}

Task<HttpResponse> HttpSession::ask_handler(HttpRequest request) {
  const std::string what = request.method + " " + request.path;
  try {
    co_return co_await handler_.handle(std::move(request));
  } catch (const boost::system::system_error& failure) {
    if (failure.code() == asio::error::operation_aborted) throw;
    log_.error("http_handler_failed", {{"request", what}, {"reason", failure.what()}});
  } catch (const std::exception& failure) {
    log_.error("http_handler_failed", {{"request", what}, {"reason", failure.what()}});
  }
  co_return problem(500, "the request could not be answered; the log says why");
}

Task<bool> HttpSession::write(HttpResponse response, bool keep_alive) {
  http::response<http::string_body> message = to_message(std::move(response), keep_alive);
  stream_.expires_after(limits_.response_max);
  error_code failure;
  if (head_only_) {
    const http::response<http::empty_body> head(std::move(message.base()));
    co_await http::async_write(stream_, head, asio::redirect_error(use_task, failure));
  } else {
    co_await http::async_write(stream_, message, asio::redirect_error(use_task, failure));
  }
  co_return !failure;
}

/// Closing a socket with unread bytes resets the connection, and the reset can overtake the answer.
/// So the rest is read and dropped for a moment.
Task<void> HttpSession::linger() {
  error_code failure;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, failure);
  stream_.expires_after(limits_.linger_max);
  while (!failure && !finishing_) {
    buffer_.clear();
    co_await stream_.async_read_some(
        buffer_.prepare(buffer_bytes_max), asio::redirect_error(use_task, failure));
  }
}

}  // namespace stagger
