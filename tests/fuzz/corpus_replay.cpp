#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/rng.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/training.hpp"

#ifndef STAGGER_SOURCE_DIR
#error "the corpus is found through STAGGER_SOURCE_DIR"
#endif

namespace stagger {
namespace {

using Input = std::vector<std::uint8_t>;

void feed(const Input& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

/// Sorted by name, so that a seed means the same everywhere.
std::vector<Input> corpus() {
  const auto folder =
      std::filesystem::path(STAGGER_SOURCE_DIR) / "tests/fuzz/corpus" / std::string(fuzz_corpus);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> inputs;
  for (const auto& path : paths) {
    Input input;
    for (const std::byte byte : file_bytes(path.string())) {
      input.push_back(std::to_integer<std::uint8_t>(byte));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::uint32_t below(RandomSequence& random, std::size_t bound) {
  return random.below(static_cast<std::uint32_t>(bound));
}

/// One change of the kinds that readers stumble over: bits, bytes, lengths, repeats.
void mutate(Input& input, RandomSequence& random) {
  if (input.empty()) {
    input.push_back(static_cast<std::uint8_t>(random.next()));
    return;
  }
  const std::size_t at = below(random, input.size());
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(6)) {
    case 0:
      *place = static_cast<std::uint8_t>(*place ^ (1U << random.below(8)));
      break;
    case 1:
      *place = static_cast<std::uint8_t>(random.next());
      break;
    case 2:
      *place = random.below(2) == 0 ? 0 : 0xff;
      break;
    case 3:
      input.erase(place, place + below(random, input.size() - at) + 1);
      break;
    case 4:
      input.insert(place, static_cast<std::uint8_t>(random.next()));
      break;
    default: {
      const Input part(place, place + below(random, std::min<std::size_t>(input.size() - at, 64)));
      input.insert(place, part.begin(), part.end());
      break;
    }
  }
}

TEST(Corpus, is_read_whole_and_cut_off_at_every_byte) {
  const auto inputs = corpus();
  ASSERT_GE(inputs.size(), 3U);
  for (const Input& input : inputs) {
    for (std::size_t size = 0; size <= input.size(); ++size) {
      feed({input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)});
    }
  }
}

TEST(Corpus, survives_seeded_mutations) {
  const auto inputs = corpus();
  ASSERT_FALSE(inputs.empty());
  RandomSequence random(1, fnv1a(fuzz_corpus));
  for (int round = 0; round < 20'000; ++round) {
    Input input = inputs[below(random, inputs.size())];
    for (std::uint32_t change = 1 + random.below(5); change > 0; --change)
      mutate(input, random);
    feed(input);
  }
}

}  // namespace
}  // namespace stagger
