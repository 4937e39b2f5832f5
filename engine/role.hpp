#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "engine/exit_code.hpp"
#include "net/host.hpp"
#include "net/real/real_host.hpp"
#include "net/scope.hpp"
#include "observability/log.hpp"

namespace stagger {

/// What every role's process consists of: a log on standard error, the real host, one scope,
/// signals.
///
/// Owner:   the command. Thread: main's.
/// The first SIGINT or SIGTERM calls `on_signal`; a second one ends the process at once with
/// ExitCode::interrupted.
class Role {
 public:
  /// `pace`: of the compute thread.
  Role(
      const std::string& component,
      std::uint64_t seed,
      const TcpOptions& tcp = {},
      Pace pace = Pace::own);

  Host host() { return real_.host(); }

  RealHost& real() { return real_; }

  Log& log() { return log_; }

  TaskScope& scope() { return scope_; }

  /// Runs the loop until `main` has ended; then cancels what else is in the scope. Rethrows the
  /// first failure.
  void run(Task<void> main, std::function<void()> on_signal);

 private:
  Task<void> run_main(Task<void> main);
  Task<void> watch_signals(std::function<void()> on_signal);
  Task<void> join();

  Log log_;
  RealHost real_;
  TaskScope scope_;
  std::exception_ptr failure_;
};

}  // namespace stagger
