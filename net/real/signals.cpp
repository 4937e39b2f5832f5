#include "net/real/signals.hpp"

#include <csignal>

#include <boost/system/system_error.hpp>

#include "net/real/operation.hpp"

namespace stagger {

Signals::Signals(boost::asio::io_context& context)
    : executor_(context.get_executor()), signals_(context, SIGINT, SIGTERM) {}

Task<int> Signals::next() {
  Operation<int> arrival(executor_);
  signals_.async_wait(arrival.handler());
  try {
    co_await arrival.wait();
  } catch (...) {
    signals_.cancel();
    throw;
  }
  if (arrival.error()) throw boost::system::system_error(arrival.error(), "signal");
  co_return arrival.value();
}

}  // namespace stagger
