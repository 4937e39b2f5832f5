#include "net/endpoint.hpp"

#include <charconv>
#include <memory>
#include <optional>

namespace stagger {

namespace {

Error bad_address(std::string_view text, std::string_view reason) {
  return Error{
      .code = Errc::bad_address, .detail = "'" + std::string(text) + "': " + std::string(reason)};
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const char* const end = std::to_address(digits.end());
  const auto [stop, error] = std::from_chars(std::to_address(digits.begin()), end, port);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return port;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
  return host + ":" + std::to_string(endpoint.port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t bracket = text.find(']');
  if (bracketed && bracket == std::string_view::npos) {
    return bad_address(text, "']' is missing after the IPv6 address");
  }
  const std::string_view rest = bracketed ? text.substr(bracket + 1) : text;
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) {
    return bad_address(text, "the port is missing; write host:port");
  }
  if (!bracketed && rest.find(':', colon + 1) != std::string_view::npos) {
    return bad_address(text, "an IPv6 address is written in brackets: [address]:port");
  }
  if (bracketed && colon != 0) return bad_address(text, "only ':port' may follow ']'");
  const std::string_view host = bracketed ? text.substr(1, bracket - 1) : rest.substr(0, colon);
  if (host.empty()) return bad_address(text, "the host is missing; write host:port");
  const std::string_view digits = rest.substr(colon + 1);
  if (digits.empty()) return bad_address(text, "the port is missing; write host:port");
  const std::optional<std::uint16_t> port = parse_port(digits);
  if (!port) return bad_address(text, "the port is not a number from 0 to 65535");
  return Endpoint{.host = std::string(host), .port = *port};
}

}  // namespace stagger
