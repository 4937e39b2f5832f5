#include "net/real/tcp_connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "net/real/operation.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t buffer_bytes = 4096;

/// The pieces of a frame that are still to be written.
class Gather {
 public:
  Gather(std::span<const std::byte> prefix, const FrameView& frame)
      : pieces_{
            asio::buffer(prefix.data(), prefix.size()),
            asio::buffer(frame.head.data(), frame.head.size()),
            asio::buffer(frame.payload.data(), frame.payload.size())} {}

  const std::array<asio::const_buffer, 3>& pieces() const { return pieces_; }

  bool empty() const { return asio::buffer_size(pieces_) == 0; }

  void consume(std::size_t bytes) {
    for (asio::const_buffer& piece : pieces_) {
      const std::size_t taken = std::min(bytes, piece.size());
      piece += taken;
      bytes -= taken;
    }
  }

 private:
  std::array<asio::const_buffer, 3> pieces_;
};

std::string peer_of(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint address = socket.remote_endpoint(error);
  return error ? "a peer that has gone" : to_string(address);
}

void configure(tcp::socket& socket, const TcpOptions& options) {
  // A connection that broke meanwhile refuses options; its first use will say so.
  error_code ignored;
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.user_timeout);
  const auto milliseconds = static_cast<int>(timeout.count());
  const int seconds = std::max(1, milliseconds / 2000);
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer_bytes), ignored);
  const std::array<std::pair<int, int>, 4> values{{
      {TCP_USER_TIMEOUT, milliseconds},
      {TCP_KEEPIDLE, seconds},
      {TCP_KEEPINTVL, std::max(1, seconds / 4)},
      {TCP_NOTSENT_LOWAT, options.unsent_bytes_max},
  }};
  if (options.window_bytes > 0) {
    // The kernel no longer tunes a buffer whose size is given, and its window follows from that.
    socket.set_option(asio::socket_base::receive_buffer_size(options.window_bytes), ignored);
  }
  for (const auto& [name, value] : values) {
    static_cast<void>(setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof(value)));
  }
}

}  // namespace

std::string to_string(const tcp::endpoint& address) {
  return to_string(Endpoint{.host = address.address().to_string(), .port = address.port()});
}

TcpConnection::TcpConnection(tcp::socket socket, Clock& clock, const TcpOptions& options)
    : socket_(std::move(socket)),
      clock_(clock),
      limits_(options.limits),
      peer_(peer_of(socket_)),
      buffer_(buffer_bytes) {
  configure(socket_, options);
}

TcpConnection::~TcpConnection() {
  close();
}

Task<Result<void>> TcpConnection::send(FrameView frame, Duration stall_max) {
  if (closed_) co_return closed_error();
  std::array<std::byte, frame_prefix_bytes_max> prefix{};
  const auto prefix_used = std::span(prefix).first(frame_prefix_bytes(!frame.payload.empty()));
  encode_frame_prefix(frame, prefix_used);
  Gather rest(prefix_used, frame);
  while (!rest.empty()) {
    Operation<std::size_t> write(socket_.get_executor());
    socket_.async_write_some(rest.pieces(), write.handler());
    bool done = false;
    try {
      done = co_await write.wait_until(clock_, deadline_after(clock_.now(), stall_max));
    } catch (...) {
      close();
      throw;
    }
    if (closed_) co_return closed_error();
    if (!done) co_return fail(Errc::deadline, "takes nothing more");
    if (write.error()) co_return fail(write.error());
    stats_.bytes_sent += write.value();
    rest.consume(write.value());
  }
  co_return Result<void>();
}

Task<Result<FrameHead>> TcpConnection::receive_head(TimePoint deadline) {
  if (closed_) co_return closed_error();
  CHECK_EQ(payload_bytes_, 0U);  // the last frame's payload was received
  const Patience patience{.deadline = deadline};
  const Result<FrameSizes> sizes = co_await read_prefix(patience);
  if (!sizes) co_return sizes.error();
  FrameHead head;
  head.words.resize(sizes->head_bytes / sizeof(std::uint64_t));
  head.payload_bytes = sizes->payload_bytes;
  const Result<void> read =
      co_await read_exactly(std::as_writable_bytes(std::span(head.words)), patience);
  if (!read) co_return read.error();
  payload_bytes_ = head.payload_bytes;
  in_frame_ = payload_bytes_ > 0;
  co_return head;
}

Task<Result<FrameSizes>> TcpConnection::read_prefix(Patience patience) {
  const Result<void> first = co_await fill(frame_prefix_bytes(false), patience);
  if (!first) co_return first.error();
  const Result<std::size_t> length = frame_prefix_length(buffered().first<8>());
  if (!length) co_return fail(Errc::bad_frame, "sent no frame: " + length.error().detail);
  const Result<void> whole = co_await fill(*length, patience);
  if (!whole) co_return whole.error();
  const Result<FrameSizes> sizes = decode_frame_prefix(buffered().first(*length), limits_);
  if (!sizes) co_return fail(Errc::bad_frame, "sent no frame: " + sizes.error().detail);
  buffer_begin_ += *length;
  co_return *sizes;
}

Task<Result<void>> TcpConnection::receive_payload(std::span<std::byte> target, Duration stall_max) {
  if (closed_) co_return closed_error();
  CHECK_EQ(target.size(), payload_bytes_);
  const Result<void> read = co_await read_exactly(target, Patience{.stall_max = stall_max});
  if (!read) co_return read.error();
  payload_bytes_ = 0;
  in_frame_ = false;
  co_return Result<void>();
}

/// Reads until the buffer holds `bytes`.
Task<Result<void>> TcpConnection::fill(std::size_t bytes, Patience patience) {
  CHECK_LE(bytes, buffer_.size());
  while (buffered().size() < bytes) {
    const std::size_t held = buffered().size();
    in_frame_ = in_frame_ || held > 0;
    std::memmove(buffer_.data(), buffer_.data() + buffer_begin_, held);
    buffer_begin_ = 0;
    buffer_end_ = held;
    const auto got = co_await read_some(std::span(buffer_).subspan(buffer_end_), patience);
    if (!got) co_return got.error();
    buffer_end_ += *got;
    in_frame_ = true;
  }
  in_frame_ = true;
  co_return Result<void>();
}

Task<Result<void>> TcpConnection::read_exactly(std::span<std::byte> target, Patience patience) {
  std::size_t filled = take_buffered(target);
  while (filled < target.size()) {
    const auto got = co_await read_some(target.subspan(filled), patience);
    if (!got) co_return got.error();
    filled += *got;
  }
  co_return Result<void>();
}

Task<Result<std::size_t>> TcpConnection::read_some(std::span<std::byte> target, Patience patience) {
  Operation<std::size_t> read(socket_.get_executor());
  socket_.async_read_some(asio::buffer(target.data(), target.size()), read.handler());
  const TimePoint give_up =
      std::min(patience.deadline, deadline_after(clock_.now(), patience.stall_max));
  bool done = false;
  try {
    done = co_await read.wait_until(clock_, give_up);
  } catch (...) {
    close();
    throw;
  }
  if (closed_) co_return closed_error();
  if (!done) co_return fail(Errc::deadline, in_frame_ ? "fell silent inside a frame" : "is silent");
  if (read.error()) co_return fail(read.error());
  stats_.bytes_received += read.value();
  co_return read.value();
}

std::span<const std::byte> TcpConnection::buffered() const {
  return std::span(buffer_).subspan(buffer_begin_, buffer_end_ - buffer_begin_);
}

std::size_t TcpConnection::take_buffered(std::span<std::byte> target) {
  const std::size_t bytes = std::min(target.size(), buffered().size());
  std::copy_n(buffered().begin(), bytes, target.begin());
  buffer_begin_ += bytes;
  return bytes;
}

void TcpConnection::close() {
  if (std::exchange(closed_, true)) return;
  stats_ = stats();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

LinkStats TcpConnection::stats() const {
  LinkStats stats = stats_;
  tcp_info info{};
  socklen_t size = sizeof(info);
  const int socket = const_cast<tcp::socket&>(socket_).native_handle();  // reads only
  if (!socket_.is_open() || getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return stats;
  }
  stats.retransmissions = info.tcpi_total_retrans;
  stats.round_trip = std::chrono::microseconds{info.tcpi_rtt};
  return stats;
}

Error TcpConnection::fail(Errc code, const std::string& reason) {
  close();
  return Error{.code = code, .detail = peer_ + " " + reason};
}

Error TcpConnection::fail(error_code error) {
  if (error == asio::error::eof) {
    return fail(
        Errc::disconnected,
        in_frame_ ? "closed the connection inside a frame" : "closed the connection");
  }
  return fail(Errc::disconnected, "is lost: " + error.message());
}

Error TcpConnection::closed_error() const {
  return Error{.code = Errc::closed, .detail = "the connection to " + peer_ + " was closed"};
}

}  // namespace stagger
