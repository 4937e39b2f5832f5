#pragma once

#include <cstdint>
#include <string>

#include "net/clock.hpp"
#include "net/task.hpp"
#include "ps/server.hpp"

namespace stagger {

/// The progress line: iteration, loss, samples/s over the last interval, T, pushes in flight, time
/// left; without the loss where there is none.
std::string progress_text(
    const ServerStatus& status,
    std::uint32_t period,
    double samples_per_second,
    double seconds_left,
    bool loss = true);

struct ProgressOptions {
  bool quiet = false;  ///< nothing is printed
  bool loss = true;    ///< there is one to show
};

/// Prints it until cancelled: in place on a terminal, else a plain line every few seconds.
Task<void> show_progress(Clock& clock, const Server& server, ProgressOptions options);

}  // namespace stagger
