#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/real/real_host.hpp"
#include "net/scope.hpp"

namespace stagger {

/// A loop with real time, sockets, files and threads for one test.
class RealWorld : public testing::Test {
 protected:
  /// Runs the loop until no task is left, and rethrows the first failure.
  void run() {
    real_.context().restart();
    real_.context().run();
    if (scope_.failure()) std::rethrow_exception(scope_.failure());
  }

  TimePoint soon(Duration wait) { return host_.clock.now() + wait; }

  std::vector<std::string> log_lines_;
  Log log_{
      "test",
      LogLevel::warning,
      [] { return std::string("-"); },
      [this](std::string_view line) {
        log_lines_.emplace_back(line);
      }};
  RealHost real_{log_, 1};
  Host host_ = real_.host();
  TaskScope scope_{real_.executor(), "test"};
};

}  // namespace stagger
