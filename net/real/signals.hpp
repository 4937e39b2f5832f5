#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "net/task.hpp"

namespace stagger {

/// SIGINT and SIGTERM as values, for the life of the object; afterwards they kill again.
///
/// Owner:   a command. Thread: the loop; one task waits at a time.
/// Cancel:  next() throws operation_aborted; a signal that comes meanwhile is kept for the next
/// call. Failure: the constructor throws system_error.
class Signals {
 public:
  explicit Signals(boost::asio::io_context& context);

  /// The number of the next signal.
  Task<int> next();

 private:
  Executor executor_;
  boost::asio::signal_set signals_;
};

}  // namespace stagger
