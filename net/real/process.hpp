#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/types.h>

#include "net/error.hpp"
#include "net/task.hpp"

namespace stagger {

struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH when it holds no '/'
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside, or instead of, ours
  /// Where stdout and stderr go: appended to this file; empty: to read_output().
  std::string output_path;
  /// stdout is ours, so that a terminal stays one; only stderr goes to output_path. REQUIRES an
  /// output_path.
  bool share_output = false;
};

/// A child process in a process group of its own, which dies with us: when our loop's thread ends,
/// however it ends, the system kills it.
///
/// For:     the launcher and process tests.
/// Owner:   whoever started it. The destructor kills the group and reaps the child, so none
/// outlives its owner. Thread:  the loop. Started by the thread whose end shall end the child.
/// Cancel:  wait() and read_output() throw operation_aborted; the process runs on.
/// Failure: start() says refused with the program and the system's reason.
class Process {
 public:
  /// Returns when the program runs.
  static Result<std::unique_ptr<Process>> start(
      boost::asio::io_context& context, const ProcessOptions& options);

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }

  /// Whether it has ended, without waiting.
  bool ended();

  /// Exit code, or 128 + the number of the signal that ended it. One task waits at a time; later
  /// calls return at once.
  Task<int> wait();

  /// What the process has written since, waiting for something; empty at the end. REQUIRES no
  /// output_path.
  Task<std::string> read_output();

  /// Signals the whole group; does nothing once the process has been reaped.
  void signal(int number);

 private:
  struct Started;

  Process(boost::asio::io_context& context, Started started);

  void reap(int flags);

  Executor executor_;
  pid_t id_;
  boost::asio::posix::stream_descriptor ending_;
  boost::asio::posix::stream_descriptor output_;
  std::optional<int> exit_code_;
};

}  // namespace stagger
