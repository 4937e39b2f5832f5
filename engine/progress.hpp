#pragma once

#include <cstdint>
#include <string>

#include "net/clock.hpp"
#include "net/task.hpp"
#include "ps/server.hpp"

namespace stagger {

/// The progress line: iteration, loss, samples/s over the last interval, T, pushes in flight, time
/// left.
std::string progress_text(
    const ServerStatus& status,
    std::uint32_t period,
    double samples_per_second,
    double seconds_left);

/// Prints it until cancelled: in place on a terminal, else a plain line every few seconds. Nothing
/// when `quiet`.
Task<void> show_progress(Clock& clock, const Server& server, bool quiet);

}  // namespace stagger
