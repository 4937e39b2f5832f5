#include <gtest/gtest.h>

#include "ps/protocol.hpp"
#include "tensor/arena.hpp"

namespace stagger {
namespace {

constexpr std::uint64_t job = 17;

TEST(ProtocolProbe, is_carried_with_and_without_its_payload) {
  const Probe sent{.number = 3, .bytes = 64};
  const AlignedFloats values(16);
  for (const std::span<const float> payload : {std::span<const float>(), values.span()}) {
    const FrameHead head{
        .words = encode_message(job, sent, payload), .payload_bytes = payload.size_bytes()};
    const auto message = decode_message(job, head);
    ASSERT_TRUE(message.has_value());
    const auto* const probe = std::get_if<Probe>(&*message);
    ASSERT_NE(probe, nullptr);
    EXPECT_EQ(probe->number, 3U);
    EXPECT_EQ(probe->bytes, 64U);
    EXPECT_EQ(check_payload(head, values.span()).has_value(), !payload.empty());
    EXPECT_FALSE(check_payload(head, values.span().first(15)).has_value());
  }
}

}  // namespace
}  // namespace stagger
