#include "net/frame.hpp"

#include <algorithm>

#include "observability/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace stagger {
namespace {

/// What a connection does with the first bytes of a frame.
void read_prefix(std::span<const std::byte> bytes) {
  const FrameLimits limits;
  if (bytes.size() < 8) return;
  const auto length = frame_prefix_length(bytes.first<8>());
  if (!length) {
    CHECK(length.error().code == Errc::bad_frame, describe(length.error()));
    return;
  }
  CHECK(*length == 8 || *length == frame_prefix_bytes_max, "a prefix of", *length);
  if (bytes.size() < *length) return;
  const auto sizes = decode_frame_prefix(bytes.first(*length), limits);
  if (!sizes) {
    CHECK(sizes.error().code == Errc::bad_frame, describe(sizes.error()));
    return;
  }
  CHECK(sizes->head_bytes > 0 && sizes->head_bytes % 8 == 0, sizes->head_bytes);
  CHECK_LE(sizes->head_bytes, limits.head_bytes_max);
  CHECK_LE(sizes->payload_bytes, limits.payload_bytes_max);
  CHECK_EQ(sizes->payload_bytes % 8, 0U);
}

}  // namespace

const std::string_view fuzz_corpus = "frame";

}  // namespace stagger

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stagger::read_prefix(stagger::fuzz_input(data, size));
  return 0;
}
