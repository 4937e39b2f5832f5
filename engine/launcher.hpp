#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/exit_code.hpp"
#include "engine/run_files.hpp"
#include "net/host.hpp"
#include "net/real/process.hpp"
#include "net/real/real_host.hpp"
#include "net/scope.hpp"

namespace stagger {

/// Starts a job's processes on this machine, watches them, and ends with them.
///
/// For:     `stagger run`.
/// Owner:   the command; the host outlives it.
/// Thread:  the loop.
/// Cancel:  the processes die with the launcher, also when it is killed.
/// Failure: a PS that does not start, and a worker that was refused or misconfigured, end the job
/// with their exit code. A
///          worker that crashes does not: the others go on without it, and the report names it.
class Launcher {
 public:
  struct Options {
    std::string program;  ///< this executable
    Config config;
    bool json = false;
  };

  Launcher(RealHost& real, Options options);

  Task<void> run();

  /// Tells the PS to end the job with its workers.
  void stop();

  ExitCode outcome() const { return outcome_; }

 private:
  Task<std::string> await_endpoint();
  Task<void> watch_worker(std::uint32_t rank);
  Task<void> end_workers();
  std::unique_ptr<Process> start(std::vector<std::string> words, const std::string& name);

  Host host_;
  RealHost& real_;
  Options options_;
  RunFiles files_;
  TaskScope scope_;
  std::unique_ptr<Process> ps_;
  std::vector<std::unique_ptr<Process>> workers_;
  ExitCode outcome_ = ExitCode::success;
  bool stopping_ = false;
};

}  // namespace stagger
