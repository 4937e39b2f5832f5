#pragma once

#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/clock.hpp"
#include "net/network.hpp"
#include "observability/log.hpp"

namespace stagger {

struct TcpOptions {
  FrameLimits limits;
  /// The kernel's share of what was sent and has not left: small, so that the end of a turn is near
  /// the end of a send.
  int send_buffer_bytes = 512 << 10;
  int unsent_bytes_max = 128 << 10;  ///< TCP_NOTSENT_LOWAT
  int window_bytes =
      0;  ///< bound of the advertised window: what may be on its way; 0: the kernel's
  Duration user_timeout =
      30s;  ///< unacknowledged bytes, or silence of the peer's machine, end the connection
};

/// Frames over TCP.
///
/// For:     servers and workers; reached through Host.
/// Owner:   RealHost.
/// Thread:  the loop. listen() resolves names on it, which happens at start only.
/// Cancel:  a cancelled connect() leaves nothing open.
/// Failure: see Network; details name the address, the system's reason and, for a taken port, its
/// owner.
class TcpNetwork final : public Network {
 public:
  TcpNetwork(boost::asio::io_context& context, Clock& clock, Log& log, TcpOptions options);

  /// Tries every address of the name, sharing the time that is left among them.
  Task<Result<std::unique_ptr<Connection>>> connect(Endpoint remote, TimePoint deadline) override;
  Result<std::unique_ptr<Listener>> listen(const Endpoint& local) override;

 private:
  using Address = boost::asio::ip::tcp::endpoint;

  Task<Result<std::vector<Address>>> resolve(Endpoint remote, TimePoint deadline);
  Task<Result<std::unique_ptr<Connection>>> connect_address(Address address, TimePoint deadline);

  boost::asio::io_context& context_;
  Clock& clock_;
  Log& log_;
  TcpOptions options_;
};

}  // namespace stagger
