#include <utility>

#include <fmt/format.h>

#include "ps/server.hpp"
#include "ps/session.hpp"
#include "tensor/arena.hpp"

// The session's part in measuring the link.
namespace stagger {

void Session::ask_probe(const Probe& probe) {
  probes_.push_back(probe);
  post(probe);
}

/// What the bytes are is of no meaning; how many they are is what was asked for.
Task<std::optional<std::string>> Session::receive_probe(FrameHead frame, Probe probe) {
  const bool asked = !probes_.empty() && probes_.front().number == probe.number &&
                     probes_.front().bytes == probe.bytes && frame.payload_bytes == probe.bytes;
  if (!asked) {
    co_return refuse(
        RefusalReason::bad_message,
        fmt::format(
            "probe {} of {} bytes, with {}: not asked for",
            probe.number,
            probe.bytes,
            frame.payload_bytes));
  }
  probes_.pop_front();
  AlignedFloats values(probe.bytes / sizeof(float));
  busy_ = true;
  const auto received = co_await connection_->receive_payload(
      payload_bytes(values.span()), server_.options().timeouts.worker);
  busy_ = false;
  if (!received) co_return describe(received.error());
  server_.heard(*worker_, incarnation_);
  if (const auto exact = check_payload(frame, std::as_const(values).span()); !exact) {
    co_return refuse(RefusalReason::wrong_length, exact.error().detail);
  }
  server_.probe_answered(probe.number);
  co_return std::nullopt;
}

}  // namespace stagger
