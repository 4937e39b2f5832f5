#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/error.hpp"

namespace stagger {

/// "127.0.0.1:7000", "[::1]:7000", "ps-0.cluster:7000". Port 0 listens on any free port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

std::string to_string(const Endpoint& endpoint);

/// bad_address says what is wrong with the text.
Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace stagger
