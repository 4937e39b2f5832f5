#include "net/real/console.hpp"

#include <chrono>
#include <cstdio>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

namespace stagger {

std::string wall_time_text() {
  const auto now = std::chrono::system_clock::now();
  const auto since_epoch = now.time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
      fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
      millis % 1000);
}

bool output_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

void write_error_line(std::string_view line) {
  const std::string whole = std::string(line) + '\n';
  std::fwrite(whole.data(), 1, whole.size(), stderr);  // stderr is unbuffered: one write
}

}  // namespace stagger
