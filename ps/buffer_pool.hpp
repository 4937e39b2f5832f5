#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tensor/arena.hpp"

namespace stagger {

/// Reuses chunk buffers, so that a steady run allocates none.
///
/// Owner:   the server; buffers may outlive it (they then free themselves).
/// Thread:  the loop.
/// Bounds:  not the pool's: Aggregator bounds what is kept early, sessions hold one each, the
/// center one per chunk.
class BufferPool {
 public:
  explicit BufferPool(std::size_t floats) : state_(std::make_shared<State>(floats)) {}

  /// A buffer of the pool's size with any content. Shared because a center chunk lives until its
  /// last reply has left.
  std::shared_ptr<AlignedFloats> acquire() {
    std::unique_ptr<AlignedFloats> buffer;
    if (state_->free.empty()) {
      buffer = std::make_unique<AlignedFloats>(state_->floats);
    } else {
      buffer = std::move(state_->free.back());
      state_->free.pop_back();
    }
    return {buffer.release(), Return{state_}};
  }

 private:
  struct State {
    explicit State(std::size_t count) : floats(count) {}

    std::size_t floats;
    std::vector<std::unique_ptr<AlignedFloats>> free;
  };

  struct Return {
    std::weak_ptr<State> state;

    void operator()(AlignedFloats* buffer) const {
      std::unique_ptr<AlignedFloats> owned(buffer);
      if (const auto pool = state.lock()) pool->free.push_back(std::move(owned));
    }
  };

  std::shared_ptr<State> state_;
};

using ChunkBuffer = std::shared_ptr<AlignedFloats>;

}  // namespace stagger
