#include "net/frame.hpp"

#include <cstring>
#include <limits>
#include <string>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t word_bytes = 8;

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::to_integer<std::uint32_t>(bytes[offset + i]) << (8 * i);
  }
  return value;
}

void write_u32(std::span<std::byte> bytes, std::size_t offset, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[offset + i] = static_cast<std::byte>((value >> (8 * i)) & 0xffU);
  }
}

std::uint32_t words_of(std::span<const std::byte> segment) {
  CHECK_EQ(segment.size() % word_bytes, 0U);
  CHECK_LE(segment.size() / word_bytes, std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(segment.size() / word_bytes);
}

Error bad_frame(std::string detail) {
  return Error{.code = Errc::bad_frame, .detail = std::move(detail)};
}

/// Bytes of a segment of `words`, or why they are not accepted. 2^32 - 1 words fit into 64 bits.
Result<std::size_t> segment_bytes(std::string_view name, std::uint32_t words, std::size_t max) {
  static_assert(sizeof(std::size_t) >= 8);
  const std::size_t bytes = std::size_t{words} * word_bytes;
  if (bytes == 0) return bad_frame("the " + std::string(name) + " segment is empty");
  if (bytes <= max) return bytes;
  return bad_frame(
      "the " + std::string(name) + " segment has " + std::to_string(bytes) + " bytes, at most " +
      std::to_string(max) + " are accepted");
}

}  // namespace

void encode_frame_prefix(const FrameView& frame, std::span<std::byte> out) {
  const bool has_payload = !frame.payload.empty();
  CHECK(!frame.head.empty(), "a frame without a head");
  CHECK_EQ(out.size(), frame_prefix_bytes(has_payload));
  write_u32(out, 0, has_payload ? 1 : 0);
  write_u32(out, 4, words_of(frame.head));
  if (!has_payload) return;
  write_u32(out, 8, words_of(frame.payload));
  write_u32(out, 12, 0);
}

Result<std::size_t> frame_prefix_length(std::span<const std::byte, 8> first) {
  const std::uint32_t segments_less_one = read_u32(first, 0);
  if (segments_less_one <= 1) return frame_prefix_bytes(segments_less_one == 1);
  return bad_frame(
      std::to_string(std::uint64_t{segments_less_one} + 1) + " segments, a frame has 1 or 2");
}

Result<FrameSizes> decode_frame_prefix(
    std::span<const std::byte> prefix, const FrameLimits& limits) {
  CHECK_LE(word_bytes, prefix.size());
  const Result<std::size_t> length = frame_prefix_length(prefix.first<8>());
  if (!length) return length.error();
  CHECK_EQ(prefix.size(), *length);

  const auto head = segment_bytes("head", read_u32(prefix, 4), limits.head_bytes_max);
  if (!head) return head.error();
  if (*length == frame_prefix_bytes(false)) return FrameSizes{.head_bytes = *head};

  const auto payload = segment_bytes("payload", read_u32(prefix, 8), limits.payload_bytes_max);
  if (!payload) return payload.error();
  if (read_u32(prefix, 12) != 0) return bad_frame("the segment table's padding is not zero");
  return FrameSizes{.head_bytes = *head, .payload_bytes = *payload};
}

}  // namespace stagger
