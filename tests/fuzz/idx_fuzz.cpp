#include "engine/dataset.hpp"
#include "observability/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace stagger {
namespace {

void read_idx_file(std::span<const std::byte> bytes) {
  const auto array = decode_idx(bytes, "fuzz.idx");
  if (!array) {
    CHECK(
        array.error().detail.find("fuzz.idx") != std::string::npos,
        "no file named:",
        array.error().detail);
    return;
  }
  std::size_t product = 1;
  for (const std::size_t extent : array->dimensions)
    product *= extent;
  CHECK_EQ(product, array->values.size());
}

}  // namespace

const std::string_view fuzz_corpus = "idx";

}  // namespace stagger

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stagger::read_idx_file(stagger::fuzz_input(data, size));
  return 0;
}
