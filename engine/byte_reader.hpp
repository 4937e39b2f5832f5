#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/error.hpp"

namespace stagger {

/// Hands out a file's bytes in order: inflated where the file is gzip (told by its first two
/// bytes), else as they are.
///
/// For:     decode_idx.
/// Owner:   one decoding; the bytes and the name outlive it.
/// Failure: storage, naming the file and what is wrong with its compression.
class ByteReader {
 public:
  ByteReader() = default;
  virtual ~ByteReader() = default;
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ByteReader(ByteReader&&) = delete;
  ByteReader& operator=(ByteReader&&) = delete;

  /// Fills as much of `target` as there is data for; says how much.
  virtual Result<std::size_t> read(std::span<std::uint8_t> target) = 0;

  /// No more than so many bytes can still come: the bound for what may be allocated on a header's
  /// word.
  virtual std::uint64_t remaining_max() const = 0;

  /// Nothing may follow: no data, and nothing behind a compressed stream either.
  virtual Result<void> expect_end() = 0;
};

std::unique_ptr<ByteReader> open_bytes(std::span<const std::byte> bytes, const std::string& source);

}  // namespace stagger
