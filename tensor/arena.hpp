#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "tensor/layout.hpp"

namespace stagger {

/// Frees what std::aligned_alloc gave.
struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};

/// `count` floats at a 64-byte boundary, zeroed, with zeros up to the next boundary.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t count);

  std::span<float> span() { return {memory_.get(), count_}; }

  std::span<const float> span() const { return {memory_.get(), count_}; }

  std::size_t size() const { return count_; }

 private:
  std::unique_ptr<float[], AlignedFree> memory_;
  std::size_t count_ = 0;
};

/// One value per parameter (weights, gradients, momentum, center, …) in the layout's order.
///
/// Owner:   the worker or the server; the layout is copied in.
/// Thread:  none of its own; who may write is the worker's business (engine/worker.hpp).
class Arena {
 public:
  Arena() = default;
  explicit Arena(const ArenaLayout& layout);

  const ArenaLayout& layout() const { return layout_; }

  std::span<float> all() { return memory_.span(); }

  std::span<const float> all() const { return memory_.span(); }

  std::span<float> group(std::size_t index);
  std::span<const float> group(std::size_t index) const;
  std::span<float> parameter(std::size_t index);
  std::span<const float> parameter(std::size_t index) const;

  /// Copies every parameter from an arena with the same parameters and perhaps other groups.
  void assign(const Arena& other);

 private:
  ArenaLayout layout_;
  AlignedFloats memory_;
};

}  // namespace stagger
