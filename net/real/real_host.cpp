#include "net/real/real_host.hpp"

namespace stagger {

RealHost::RealHost(Log& log, std::uint64_t seed, TcpOptions tcp, Pace pace)
    : context_(1),
      log_(log),
      seed_(seed),
      clock_(context_),
      network_(context_, clock_, log, tcp),
      compute_(context_.get_executor(), pace) {}

Host RealHost::host() {
  return Host{
      .executor = executor(),
      .clock = clock_,
      .network = network_,
      .storage = storage_,
      .compute = compute_,
      .log = log_,
      .seed = seed_};
}

}  // namespace stagger
