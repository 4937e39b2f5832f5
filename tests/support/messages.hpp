#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/protocol.hpp"

/// One of every message, with something in every field.
namespace stagger {

Plan example_plan();
Hello example_hello();
Heartbeat example_heartbeat();
Farewell example_farewell();

/// In the order of the variant.
std::vector<Message> example_messages();

/// Encoded as it is sent: pushes and centers with a payload of example_payload_floats.
std::vector<std::uint64_t> encode_example(std::uint64_t job, const Message& message);
constexpr std::size_t example_payload_floats = 16;

}  // namespace stagger
