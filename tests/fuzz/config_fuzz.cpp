#include "engine/config.hpp"

#include <string>

#include "observability/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace stagger {
namespace {

/// A config is refused with its file's name, or is written and read back to the same values.
void read_config(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const std::string written = to_toml(parse_config(text, "fuzz.toml", {}));
    CHECK_EQ(to_toml(parse_config(written, "written.toml", {})), written);
  } catch (const ConfigError& error) {
    const std::string_view what = error.what();
    CHECK(what.starts_with("fuzz.toml"), what);
  }
}

}  // namespace

const std::string_view fuzz_corpus = "config";

}  // namespace stagger

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stagger::read_config(stagger::fuzz_input(data, size));
  return 0;
}
