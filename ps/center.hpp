#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/elastic.hpp"
#include "ps/buffer_pool.hpp"
#include "ps/ids.hpp"
#include "ps/policy.hpp"
#include "tensor/arena.hpp"

namespace stagger {

/// The server's copy of the parameters, as immutable versioned chunks.
///
/// For:     Aggregator, which replaces a chunk when its round closes; sessions, which send chunks.
/// Owner:   the server.
/// Thread:  the loop.
/// A reader keeps the snapshot it was given: replacing a chunk never changes bytes that are being
/// sent.
class Center {
 public:
  struct Snapshot {
    std::shared_ptr<const AlignedFloats> values;
    std::size_t size = 0;       ///< floats in use
    Iteration iteration;        ///< of the round that made it; 0: the initial center
    std::uint32_t present = 0;  ///< workers in that round

    std::span<const float> span() const { return values->span().first(size); }
  };

  /// Cuts the arena's groups into chunks of `chunk_floats`.
  Center(const Arena& initial, std::size_t chunk_floats);

  const ArenaLayout& layout() const { return layout_; }

  std::uint32_t groups() const { return static_cast<std::uint32_t>(chunks_.size()); }

  std::uint32_t chunks(GroupId group) const;
  std::size_t chunk_size(GroupId group, std::uint32_t chunk) const;
  const Snapshot& chunk(GroupId group, std::uint32_t chunk) const;

  BufferPool& pool() { return pool_; }

  /// Closes a round of a chunk: `sum` (over `present` workers) becomes the new center by the
  /// policy's rule. Without anybody present the values and the momentum stay; the snapshot still
  /// counts as the round's.
  struct Close {
    RoundId round;
    std::uint32_t chunk = 0;
    std::uint32_t present = 0;
    float learning_rate = 0.0F;  ///< bsp only
  };

  void close(const Close& close, const SyncPolicy& policy, ChunkBuffer sum);

  /// bsp: the optimiser's other constants; the learning rate comes with each close.
  void set_optimizer(SgdConstants sgd) { sgd_ = sgd; }

  /// The whole center in one arena: for checkpoints, evaluation and the report.
  Arena assemble() const;

 private:
  std::span<float> velocity(RoundId round, std::uint32_t chunk);

  ArenaLayout layout_;
  std::size_t chunk_floats_;
  BufferPool pool_;
  std::vector<std::vector<Snapshot>> chunks_;
  std::vector<std::vector<AlignedFloats>>
      velocity_;  // of the center's own steps; empty before one has momentum
  SgdConstants sgd_;
};

}  // namespace stagger
