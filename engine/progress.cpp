#include "engine/progress.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "net/real/console.hpp"

namespace stagger {

std::string progress_text(
    const ServerStatus& status,
    std::uint32_t period,
    double samples_per_second,
    double seconds_left,
    bool loss) {
  return fmt::format(
      "iteration {}/{}{}  {:.0f} samples/s  T={}  in flight {}  {:.0f} s left",
      status.iteration.value(),
      status.last_iteration.value(),
      loss ? fmt::format("  loss {:.4f}", status.loss) : "",
      samples_per_second,
      period,
      status.pushes_in_flight,
      seconds_left);
}

Task<void> show_progress(Clock& clock, const Server& server, ProgressOptions options) {
  if (options.quiet) co_return;
  const bool terminal = output_is_terminal();
  const Duration interval = terminal ? Duration{500ms} : Duration{5s};
  TimePoint last_at = clock.now();
  std::uint64_t last_samples = 0;
  for (;;) {
    co_await clock.sleep_until(clock.now() + interval);
    const ServerStatus status = server.status();
    if (!status.started) continue;
    const TimePoint now = clock.now();
    const double seconds = to_seconds(now - last_at);
    const double rate = static_cast<double>(status.samples - last_samples) / seconds;
    const double elapsed = to_seconds(now - server.totals().started_at);
    const auto done = static_cast<double>(std::max<std::uint64_t>(status.iteration.value(), 1));
    const double left =
        elapsed / done * (static_cast<double>(status.last_iteration.value()) - done);
    const std::string text = progress_text(
        status, server.plans().latest().policy.period, rate, std::max(left, 0.0), options.loss);
    fmt::print("{}{}{}", terminal ? "\r\033[K" : "", text, terminal ? "" : "\n");
    std::fflush(stdout);
    last_at = now;
    last_samples = status.samples;
  }
}

}  // namespace stagger
