#include "engine/safetensors.hpp"

#include <string>

#include "observability/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace stagger {
namespace {

/// A file is refused with its name, or fills every value, and what it filled is written and read
/// back.
void read_checkpoint(std::span<const std::byte> bytes) {
  const ArenaLayout layout(
      {{.name = "a", .shape = {2, 3}, .layer = 0}, {.name = "b", .shape = {2}, .layer = 1}},
      {{.begin = 0, .end = 2}});
  Arena values(layout);
  const auto metadata = decode_safetensors(bytes, "fuzz.safetensors", values);
  if (!metadata) {
    CHECK(
        metadata.error().detail.find("fuzz.safetensors") != std::string::npos,
        "no file named:",
        metadata.error().detail);
    return;
  }
  Arena again(layout);
  const auto back = decode_safetensors(encode_safetensors(values, *metadata), "again", again);
  CHECK(back.has_value(), "its own file refused");
  CHECK(*back == *metadata, "other metadata");
  CHECK_EQ(parameters_sha256(again), parameters_sha256(values));
}

}  // namespace

const std::string_view fuzz_corpus = "safetensors";

}  // namespace stagger

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stagger::read_checkpoint(stagger::fuzz_input(data, size));
  return 0;
}
