#pragma once

#include <cstdint>

#include <boost/asio/io_context.hpp>

#include "net/host.hpp"
#include "net/real/disk_storage.hpp"
#include "net/real/steady_clock.hpp"
#include "net/real/tcp_network.hpp"
#include "net/real/thread_compute.hpp"

namespace stagger {

/// One loop and the real world around it. A process has one per loop: a server one per shard.
///
/// Owner:   a command; outlives every component that runs on it, as `log` outlives it.
/// Thread:  made and run by the loop's thread: `context().run()` returns when no task is left.
/// Failure: the constructor throws system_error when the system refuses a timer or a thread.
class RealHost {
 public:
  RealHost(Log& log, std::uint64_t seed, TcpOptions tcp = {}, Pace pace = Pace::own);
  ~RealHost() = default;
  RealHost(const RealHost&) = delete;
  RealHost& operator=(const RealHost&) = delete;

  Host host();

  boost::asio::io_context& context() { return context_; }

  Executor executor() { return context_.get_executor(); }

 private:
  boost::asio::io_context context_;
  Log& log_;
  std::uint64_t seed_;
  SteadyClock clock_;
  TcpNetwork network_;
  DiskStorage storage_;
  ThreadCompute compute_;
};

}  // namespace stagger
