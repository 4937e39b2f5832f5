#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stagger {

/// 64-bit FNV-1a over everything that happened: two runs with one hash did the same.
class TraceHash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash_ = (hash_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  }

  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    add(std::as_bytes(std::span(text)));
  }

  void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }

  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace stagger
