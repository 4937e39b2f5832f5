#pragma once

#include <memory>

#include <boost/asio/ip/tcp.hpp>

#include "net/real/tcp_network.hpp"

namespace stagger {

/// A listening socket. See Listener. When the process runs out of descriptors it logs so and tries
/// again.
class TcpListener final : public Listener {
 public:
  TcpListener(
      boost::asio::ip::tcp::acceptor acceptor, Clock& clock, Log& log, const TcpOptions& options);
  ~TcpListener() override;
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  Task<Result<std::unique_ptr<Connection>>> accept() override;

  Endpoint local() const override { return local_; }

  void close() override;

 private:
  boost::asio::ip::tcp::acceptor acceptor_;
  Clock& clock_;
  Log& log_;
  TcpOptions options_;
  Endpoint local_;
  bool closed_ = false;
};

}  // namespace stagger
