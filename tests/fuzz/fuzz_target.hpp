#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// One fuzzed reader per program.
///
/// As plain tests, corpus_replay.cpp feeds each target its corpus, every truncation of it, and
/// seeded mutations. With libFuzzer the target is linked without corpus_replay.cpp:
///     clang++ -std=c++20 -fsanitize=fuzzer,address -I. tests/fuzz/frame_fuzz.cpp net/frame.cpp …
///     ./frame_fuzz tests/fuzz/corpus/frame
/// A target may refuse its input; it aborts (CHECK) when the reader breaks its word, and never
/// throws.
namespace stagger {

/// Folder of the target's corpus, below tests/fuzz/corpus.
extern const std::string_view fuzz_corpus;

inline std::span<const std::byte> fuzz_input(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace stagger

// libFuzzer's entry point; its name is libFuzzer's choice.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
