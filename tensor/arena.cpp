#include "tensor/arena.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t line_bytes = 64;

}  // namespace

AlignedFloats::AlignedFloats(std::size_t count) : count_(count) {
  CHECK(count < (std::size_t{1} << 48U), "absurd allocation", count);
  const std::size_t bytes = (count * sizeof(float) + line_bytes - 1) / line_bytes * line_bytes;
  if (bytes == 0) return;
  auto* const memory = static_cast<float*>(std::aligned_alloc(line_bytes, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  memory_.reset(memory);
  std::fill_n(memory, bytes / sizeof(float), 0.0F);
}

Arena::Arena(const ArenaLayout& layout) : layout_(layout), memory_(layout.size()) {}

std::span<float> Arena::group(std::size_t index) {
  const ArenaLayout::Span place = layout_.group(index);
  return all().subspan(place.offset, place.size);
}

std::span<const float> Arena::group(std::size_t index) const {
  const ArenaLayout::Span place = layout_.group(index);
  return all().subspan(place.offset, place.size);
}

std::span<float> Arena::parameter(std::size_t index) {
  const ArenaLayout::Span place = layout_.parameter(index);
  return all().subspan(place.offset, place.size);
}

std::span<const float> Arena::parameter(std::size_t index) const {
  const ArenaLayout::Span place = layout_.parameter(index);
  return all().subspan(place.offset, place.size);
}

void Arena::assign(const Arena& other) {
  CHECK(
      layout_.parameters() == other.layout_.parameters(),
      "arenas of different models",
      layout_.parameters().size(),
      other.layout_.parameters().size());
  for (std::size_t index = 0; index < layout_.parameters().size(); ++index) {
    const std::span<const float> source = other.parameter(index);
    std::copy(source.begin(), source.end(), parameter(index).begin());
  }
}

}  // namespace stagger
