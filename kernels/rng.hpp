#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// Counter-based random numbers: the same on every machine, and any of them without the ones
/// before.
namespace stagger {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four
/// 32-bit numbers for a 128-bit counter under a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox4x32(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(second >> 32U) ^ counter[1] ^ key[0],
        static_cast<std::uint32_t>(second),
        static_cast<std::uint32_t>(first >> 32U) ^ counter[3] ^ key[1],
        static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// FNV-1a, 64 bit; `state` continues an earlier hash.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t state = 0xCBF29CE484222325U) {
  for (const char letter : text) {
    state ^= static_cast<std::uint8_t>(letter);
    state *= 0x100000001B3U;
  }
  return state;
}

/// One of 2^64 sequences of random numbers under a seed. A value; a copy continues where the
/// original stood.
class RandomSequence {
 public:
  constexpr RandomSequence(std::uint64_t seed, std::uint64_t sequence)
      : seed_(seed), sequence_(sequence) {}

  /// The next 32 random bits.
  constexpr std::uint32_t next() {
    if (used_ == 4) refill();
    return block_[used_++];
  }

  /// Uniform in [0, 1), 24 bits.
  constexpr float uniform() { return static_cast<float>(next() >> 8U) * 0x1.0p-24F; }

  /// Uniform in [0, bound), without bias (Lemire's rejection). REQUIRES bound > 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    const std::uint32_t reject = (0U - bound) % bound;
    std::uint64_t product = std::uint64_t{next()} * bound;
    while (static_cast<std::uint32_t>(product) < reject)
      product = std::uint64_t{next()} * bound;
    return static_cast<std::uint32_t>(product >> 32U);
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
  }

  static constexpr std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32U);
  }

  constexpr void refill() {
    block_ = philox4x32(
        {low(position_), high(position_), low(sequence_), high(sequence_)},
        {low(seed_), high(seed_)});
    ++position_;
    used_ = 0;
  }

  std::uint64_t seed_;
  std::uint64_t sequence_;
  std::uint64_t position_ = 0;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
};

}  // namespace stagger
