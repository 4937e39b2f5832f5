#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/error.hpp"

/// Cap'n Proto's standard stream framing, cut where the engine needs it.
///
/// A message is one or two segments. Segment 0 is the head: small, built and read by ps/protocol.
/// Segment 1 is the payload: the bytes of a chunk, which are never copied on the way out (gather
/// write) and are read straight into the buffer they are reduced from. `capnp decode` reads the
/// stream as it is.
///
///     u32 segments - 1 | u32 words of segment 0 | [u32 words of segment 1 | u32 zero] | segment 0
///     | [segment 1]
namespace stagger {

/// A frame to send. Both spans are borrowed until send() has returned, 8-byte aligned, multiples of
/// 8 bytes long.
struct FrameView {
  std::span<const std::byte> head;
  std::span<const std::byte> payload;  ///< empty: a message of one segment
};

/// The head of a received frame; `payload_bytes` (a multiple of 8, 0 for one segment) are still to
/// be received.
struct FrameHead {
  std::vector<std::uint64_t> words;
  std::size_t payload_bytes = 0;
};

/// What a reader accepts; checked before anything is allocated.
struct FrameLimits {
  std::size_t head_bytes_max = std::size_t{1} << 20;
  std::size_t payload_bytes_max = std::size_t{16} << 20;
};

constexpr std::size_t frame_prefix_bytes_max = 16;

struct FrameSizes {
  std::size_t head_bytes = 0;
  std::size_t payload_bytes = 0;
};

/// Bytes of the segment table of a frame with (2 segments) or without payload.
constexpr std::size_t frame_prefix_bytes(bool has_payload) {
  return has_payload ? 16 : 8;
}

/// Writes the segment table; `out` holds frame_prefix_bytes(has payload).
void encode_frame_prefix(const FrameView& frame, std::span<std::byte> out);

/// Reads the first 8 bytes: how many bytes the whole prefix has (8 or 16), or bad_frame.
Result<std::size_t> frame_prefix_length(std::span<const std::byte, 8> first);

/// Reads a whole prefix. bad_frame says which number broke which limit.
Result<FrameSizes> decode_frame_prefix(
    std::span<const std::byte> prefix, const FrameLimits& limits);

}  // namespace stagger
