#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/endpoint.hpp"
#include "net/error.hpp"
#include "net/frame.hpp"
#include "net/task.hpp"
#include "net/time.hpp"

/// Frames between processes: real TCP (net/real) or simulated links (net/sim).
namespace stagger {

/// What the transport knows about a connection. Times are zero where it does not tell (simulation:
/// round trip only).
struct LinkStats {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t retransmissions = 0;
  Duration round_trip{0};
};

/// One ordered stream of frames.
///
/// For:     ps/session and ps/client.
/// Owner:   whoever accepted or dialled it; destroyed after the tasks that use it.
/// Thread:  the loop. At most one send and one receive at a time.
/// Cancel:  a cancelled operation throws operation_aborted and closes the connection (half a frame
/// may be out). Failure: disconnected, deadline, bad_frame, closed. Every failure closes the
/// connection; later calls say closed.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Returns when the transport has taken the whole frame. Fails with deadline when it takes
  /// nothing for `stall_max`.
  virtual Task<Result<void>> send(FrameView frame, Duration stall_max) = 0;

  /// The next frame's head. `deadline` is absolute; time_point_max waits for ever.
  virtual Task<Result<FrameHead>> receive_head(TimePoint deadline) = 0;

  /// The payload of the frame whose head came last; REQUIRES target.size() == payload_bytes. Fails
  /// with deadline when nothing arrives for `stall_max`.
  virtual Task<Result<void>> receive_payload(std::span<std::byte> target, Duration stall_max) = 0;

  /// Idempotent. Pending operations end with closed.
  virtual void close() = 0;

  /// Address of the other side, for messages.
  virtual const std::string& peer() const = 0;

  virtual LinkStats stats() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;

  /// Waits for the next peer. Fails with closed after close().
  virtual Task<Result<std::unique_ptr<Connection>>> accept() = 0;

  /// Where it listens, with the real port.
  virtual Endpoint local() const = 0;

  virtual void close() = 0;
};

/// Makes connections. Reached through Host.
class Network {
 public:
  /// unreachable, bad_address or deadline; the detail names the endpoint and the system's reason.
  virtual Task<Result<std::unique_ptr<Connection>>> connect(
      Endpoint remote, TimePoint deadline) = 0;

  /// address_in_use, bad_address; the detail names the endpoint, the system's reason and what to
  /// do.
  virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& local) = 0;

 protected:
  ~Network() = default;
};

}  // namespace stagger
