#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "net/clock.hpp"
#include "net/network.hpp"
#include "net/real/tcp_network.hpp"

namespace stagger {

/// "127.0.0.1:7000", "[::1]:7000".
std::string to_string(const boost::asio::ip::tcp::endpoint& address);

/// A connected socket that speaks frames. See Connection.
///
/// Heads are read through a small buffer, so that a small frame costs one system call; a payload
/// goes straight into its target but for the first few bytes that came with the head.
class TcpConnection final : public Connection {
 public:
  TcpConnection(boost::asio::ip::tcp::socket socket, Clock& clock, const TcpOptions& options);
  ~TcpConnection() override;
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  Task<Result<void>> send(FrameView frame, Duration stall_max) override;
  Task<Result<FrameHead>> receive_head(TimePoint deadline) override;
  Task<Result<void>> receive_payload(std::span<std::byte> target, Duration stall_max) override;
  void close() override;

  const std::string& peer() const override { return peer_; }

  LinkStats stats() const override;

 private:
  /// When a read gives up: at a time, or after a time without a byte.
  struct Patience {
    TimePoint deadline = time_point_max;
    Duration stall_max = Duration::max();
  };

  Task<Result<std::size_t>> read_some(std::span<std::byte> target, Patience patience);
  Task<Result<void>> read_exactly(std::span<std::byte> target, Patience patience);
  Task<Result<void>> fill(std::size_t bytes, Patience patience);
  Task<Result<FrameSizes>> read_prefix(Patience patience);
  std::span<const std::byte> buffered() const;
  std::size_t take_buffered(std::span<std::byte> target);
  Error fail(Errc code, const std::string& reason);
  Error fail(boost::system::error_code error);
  Error closed_error() const;

  boost::asio::ip::tcp::socket socket_;
  Clock& clock_;
  FrameLimits limits_;
  std::string peer_;
  std::vector<std::byte> buffer_;
  std::size_t buffer_begin_ = 0;
  std::size_t buffer_end_ = 0;
  std::size_t payload_bytes_ = 0;
  LinkStats stats_;
  bool in_frame_ = false;
  bool closed_ = false;
};

}  // namespace stagger
