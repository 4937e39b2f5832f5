#include <algorithm>
#include <cstring>
#include <variant>
#include <vector>

#include "observability/check.hpp"
#include "ps/protocol.hpp"
#include "tensor/arena.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace stagger {
namespace {

constexpr std::size_t payload_floats = 16;
constexpr std::size_t words_max = 512;  // what is sent back then fits one segment

/// What a session does with a head; what was understood can be sent and is understood again.
void read_head(std::span<const std::byte> bytes) {
  const std::uint64_t job = job_hash("fuzz");
  const AlignedFloats payload(payload_floats);
  FrameHead head{
      .words = std::vector<std::uint64_t>(std::min(bytes.size() / 8, words_max)),
      .payload_bytes = payload_bytes(payload.span()).size()};
  if (!head.words.empty()) std::memcpy(head.words.data(), bytes.data(), 8 * head.words.size());
  const auto message = decode_message(job, head);
  if (!message) {
    CHECK(message.error().code == Errc::bad_message, describe(message.error()));
    return;
  }
  const bool chunk = std::holds_alternative<Push>(*message) ||
                     std::holds_alternative<CenterReply>(*message) ||
                     std::holds_alternative<Probe>(*message);
  if (chunk) {
    const auto exact = check_payload(head, payload.span());
    CHECK(exact || exact.error().code == Errc::bad_message);
  }
  const FrameHead again{
      .words = encode_message(job, *message, chunk ? payload.span() : std::span<const float>()),
      .payload_bytes = head.payload_bytes};
  const auto back = decode_message(job, again);
  CHECK(back.has_value(), name_of(*message));
  CHECK_EQ(back->index(), message->index());
}

}  // namespace

const std::string_view fuzz_corpus = "message";

}  // namespace stagger

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stagger::read_head(stagger::fuzz_input(data, size));
  return 0;
}
