#pragma once

#include <cstdint>
#include <string>

namespace stagger {

/// Who listens on a TCP port of this machine, as "process 4711 (stagger)"; empty when /proc does
/// not tell.
std::string describe_port_owner(std::uint16_t port);

}  // namespace stagger
