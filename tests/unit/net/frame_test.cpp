#include "net/frame.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

std::vector<std::byte> table_of(std::vector<std::uint32_t> words) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t word : words) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::byte>((word >> shift) & 0xffU));
    }
  }
  return bytes;
}

std::string reason_of(const std::vector<std::uint32_t>& words, const FrameLimits& limits) {
  const std::vector<std::byte> bytes = table_of(words);
  const Result<FrameSizes> sizes = decode_frame_prefix(bytes, limits);
  if (sizes) return "accepted";
  EXPECT_EQ(sizes.error().code, Errc::bad_frame);
  return sizes.error().detail;
}

constexpr FrameLimits small_limits{.head_bytes_max = 64, .payload_bytes_max = 128};

TEST(Frame, prefix_is_the_standard_segment_table) {
  const std::array<std::uint64_t, 3> head{};
  const std::array<std::uint64_t, 5> payload{};
  const FrameView both{
      .head = std::as_bytes(std::span(head)), .payload = std::as_bytes(std::span(payload))};
  std::vector<std::byte> prefix(frame_prefix_bytes(true));
  encode_frame_prefix(both, prefix);
  EXPECT_EQ(prefix, table_of({1, 3, 5, 0}));

  const FrameView bare{.head = std::as_bytes(std::span(head)), .payload = {}};
  prefix.resize(frame_prefix_bytes(false));
  encode_frame_prefix(bare, prefix);
  EXPECT_EQ(prefix, table_of({0, 3}));
}

TEST(Frame, decoding_gives_the_sizes_that_were_encoded) {
  const std::vector<std::uint64_t> words(16);
  for (std::size_t head = 1; head <= 8; ++head) {
    for (std::size_t payload = 0; payload <= 16; ++payload) {
      const FrameView frame{
          .head = std::as_bytes(std::span(words).first(head)),
          .payload = std::as_bytes(std::span(words).first(payload))};
      std::vector<std::byte> prefix(frame_prefix_bytes(payload > 0));
      encode_frame_prefix(frame, prefix);
      const auto length = frame_prefix_length(std::span<const std::byte>(prefix).first<8>());
      ASSERT_TRUE(length);
      EXPECT_EQ(*length, prefix.size());
      const Result<FrameSizes> sizes = decode_frame_prefix(prefix, small_limits);
      ASSERT_TRUE(sizes) << sizes.error().detail;
      EXPECT_EQ(sizes->head_bytes, head * 8);
      EXPECT_EQ(sizes->payload_bytes, payload * 8);
    }
  }
}

TEST(Frame, accepts_the_limits_and_refuses_one_word_more) {
  EXPECT_EQ(reason_of({1, 8, 16, 0}, small_limits), "accepted");
  EXPECT_EQ(
      reason_of({1, 9, 16, 0}, small_limits),
      "the head segment has 72 bytes, at most 64 are accepted");
  EXPECT_EQ(
      reason_of({1, 8, 17, 0}, small_limits),
      "the payload segment has 136 bytes, at most 128 are accepted");
}

TEST(Frame, largest_word_counts_do_not_overflow) {
  constexpr std::uint32_t most = 0xffffffffU;
  EXPECT_EQ(
      reason_of({0, most}, FrameLimits{}),
      "the head segment has 34359738360 bytes, at most 1048576 are accepted");
  EXPECT_EQ(
      reason_of({1, 1, most, 0}, FrameLimits{}),
      "the payload segment has 34359738360 bytes, at most 16777216 are accepted");
}

TEST(Frame, refuses_other_segment_counts_before_anything_else) {
  for (const std::uint32_t less_one : {2U, 3U, 511U, 0x7fffffffU, 0xffffffffU}) {
    const std::vector<std::byte> first = table_of({less_one, 1});
    const auto length = frame_prefix_length(std::span<const std::byte>(first).first<8>());
    ASSERT_FALSE(length);
    EXPECT_EQ(
        length.error().detail,
        std::to_string(std::uint64_t{less_one} + 1) + " segments, a frame has 1 or 2");
  }
}

TEST(Frame, refuses_padding_that_is_not_zero) {
  EXPECT_EQ(reason_of({1, 1, 1, 1}, small_limits), "the segment table's padding is not zero");
}

TEST(Frame, refuses_empty_segments) {
  EXPECT_EQ(reason_of({0, 0}, small_limits), "the head segment is empty");
  EXPECT_EQ(reason_of({1, 1, 0, 0}, small_limits), "the payload segment is empty");
}

TEST(FrameDeathTest, odd_sizes_are_our_bug) {
  const std::array<std::byte, 12> odd{};
  std::array<std::byte, 8> prefix{};
  EXPECT_DEATH(encode_frame_prefix(FrameView{.head = odd, .payload = {}}, prefix), "CHECK failed");
}

}  // namespace
}  // namespace stagger
