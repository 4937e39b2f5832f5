#include "engine/role.hpp"

#include <cstdlib>
#include <exception>
#include <utility>

#include "net/real/console.hpp"
#include "net/real/signals.hpp"

namespace stagger {

Role::Role(const std::string& component, std::uint64_t seed, const TcpOptions& tcp, Pace pace)
    : log_(component, LogLevel::info, wall_time_text, write_error_line),
      real_(log_, seed, tcp, pace),
      scope_(real_.host().executor, component) {}

void Role::run(Task<void> main, std::function<void()> on_signal) {
  scope_.spawn("main", run_main(std::move(main)));
  scope_.spawn("watch_signals", watch_signals(std::move(on_signal)));
  TaskScope waiting(real_.host().executor, "join");
  waiting.spawn("join", join());
  real_.context().run();
  if (failure_) std::rethrow_exception(failure_);
}

Task<void> Role::run_main(Task<void> main) {
  co_await std::move(main);
  scope_.cancel();
}

Task<void> Role::join() {
  try {
    co_await scope_.join();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

Task<void> Role::watch_signals(std::function<void()> on_signal) {
  Signals signals(real_.context());
  const int first = co_await signals.next();
  log_.info("signal", {{"number", first}});
  on_signal();
  const int second = co_await signals.next();
  log_.warning("second_signal", {{"number", second}});
  std::_Exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace stagger
