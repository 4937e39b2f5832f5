#include "engine/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>

#include <fmt/format.h>
#include <zlib.h>

namespace stagger {

namespace {

Error refuse(const std::string& source, const std::string& detail) {
  return {.code = Errc::storage, .detail = source + ": " + detail};
}

class PlainReader final : public ByteReader {
 public:
  PlainReader(std::span<const std::byte> bytes, const std::string& source)
      : rest_(bytes), source_(source) {}

  Result<std::size_t> read(std::span<std::uint8_t> target) override {
    const std::size_t count = std::min(target.size(), rest_.size());
    if (count > 0) std::memcpy(target.data(), rest_.data(), count);
    rest_ = rest_.subspan(count);
    return count;
  }

  std::uint64_t remaining_max() const override { return rest_.size(); }

  Result<void> expect_end() override {
    if (rest_.empty()) return {};
    return refuse(source_, fmt::format("{} bytes after the values", rest_.size()));
  }

 private:
  std::span<const std::byte> rest_;
  const std::string& source_;
};

class GzipReader final : public ByteReader {
 public:
  GzipReader(std::span<const std::byte> bytes, const std::string& source)
      : compressed_(bytes), source_(source) {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
  }

  ~GzipReader() override { inflateEnd(&stream_); }

  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  GzipReader(GzipReader&&) = delete;
  GzipReader& operator=(GzipReader&&) = delete;

  Result<std::size_t> read(std::span<std::uint8_t> target) override {
    std::size_t done = 0;
    while (done < target.size() && !ended_) {
      const std::size_t room = std::min(target.size() - done, step_max);
      stream_.next_out = target.data() + done;
      stream_.avail_out = static_cast<uInt>(room);
      const uInt offered = offer_input();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      position_ += offered - stream_.avail_in;
      done += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = true;
      } else if (status == Z_BUF_ERROR || (status == Z_OK && starved())) {
        return refuse(source_, fmt::format("compressed data ends early, at byte {}", position_));
      } else if (status != Z_OK) {
        return refuse(
            source_,
            fmt::format(
                "damaged gzip data at byte {}: {}",
                position_,
                stream_.msg == nullptr ? "no reason given" : stream_.msg));
      }
    }
    return done;
  }

  std::uint64_t remaining_max() const override {
    // No deflate stream grows by more than this (zlib's technical notes); a header that promises
    // more is a lie.
    constexpr std::uint64_t growth_max = 1032;
    return growth_max * compressed_.size();
  }

  Result<void> expect_end() override {
    std::array<std::uint8_t, 1> more{};
    const Result<std::size_t> count = read(more);
    if (!count) return count.error();
    if (*count > 0) return refuse(source_, "inflates to more than its header says");
    if (position_ == compressed_.size()) return {};
    return refuse(
        source_, fmt::format("{} bytes after the gzip stream", compressed_.size() - position_));
  }

 private:
  static constexpr std::size_t step_max = std::size_t{1} << 30U;

  /// zlib counts in 32 bits; larger files are offered piece by piece.
  uInt offer_input() {
    const std::size_t left = compressed_.size() - position_;
    // zlib's interface is older than const; it does not write.
    auto* const bytes = const_cast<std::byte*>(compressed_.data() + position_);
    stream_.next_in = reinterpret_cast<Bytef*>(bytes);
    stream_.avail_in = static_cast<uInt>(std::min(left, step_max));
    return stream_.avail_in;
  }

  /// All input taken and room left in the output: nothing more will come.
  bool starved() const { return position_ == compressed_.size() && stream_.avail_out > 0; }

  std::span<const std::byte> compressed_;
  const std::string& source_;
  z_stream stream_{};
  std::size_t position_ = 0;  ///< compressed bytes taken
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteReader> open_bytes(
    std::span<const std::byte> bytes, const std::string& source) {
  const bool gzip = bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
  if (gzip) return std::make_unique<GzipReader>(bytes, source);
  return std::make_unique<PlainReader>(bytes, source);
}

}  // namespace stagger
