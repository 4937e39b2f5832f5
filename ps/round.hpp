#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ps/ids.hpp"

namespace stagger {

/// Who has come to one round, and whose turn it is to be summed. Pure; holds no values.
///
/// Participation is per chunk: a chunk of a push counts whole or not at all. Each chunk sums its
/// contributions in the planned order, whatever the order of arrival, so that equal runs give equal
/// bits. A round has no timer: it closes short only because a worker was declared absent.
class Round {
 public:
  enum class Turn : std::uint8_t {
    next,      ///< sum it now
    early,     ///< somebody before it in the order has not come yet
    repeated,  ///< already here
    unknown,   ///< not in this round, or no such chunk
  };

  /// REQUIRES: `order` names each worker once.
  Round(RoundId id, std::vector<WorkerId> order, std::uint32_t chunks);

  RoundId id() const { return id_; }

  std::uint32_t chunks() const { return static_cast<std::uint32_t>(chunks_.size()); }

  Turn turn(WorkerId worker, std::uint32_t chunk) const;

  /// Notes a chunk that is kept until its turn. REQUIRES turn() == early.
  void keep(WorkerId worker, std::uint32_t chunk);

  /// Notes that the chunk was summed. REQUIRES that it is first in the order.
  void take(WorkerId worker, std::uint32_t chunk);

  /// The worker does not contribute (this chunk, or whatever it has not contributed yet). Kept
  /// chunks still count, except when dropped by chunk. Unknown workers are ignored.
  void skip(WorkerId worker, std::uint32_t chunk);
  void skip(WorkerId worker);

  /// Whose contribution the chunk waits for or holds next; none when it is closed.
  std::optional<WorkerId> front(std::uint32_t chunk) const;

  /// The front worker's chunk is kept and can be summed.
  bool front_is_kept(std::uint32_t chunk) const;

  bool chunk_closed(std::uint32_t chunk) const { return !front(chunk).has_value(); }

  bool closed() const;

  std::uint32_t present(std::uint32_t chunk) const { return chunks_.at(chunk).taken; }

  /// Workers that some chunk still waits for.
  std::vector<WorkerId> missing() const;

 private:
  enum class Mark : std::uint8_t { pending, kept, done };

  struct Chunk {
    std::vector<Mark> marks;  // by position in the order
    std::size_t front = 0;
    std::uint32_t taken = 0;
  };

  std::optional<std::size_t> position(WorkerId worker) const;
  void finish(Chunk& chunk, std::size_t position);

  RoundId id_;
  std::vector<WorkerId> order_;
  std::vector<Chunk> chunks_;
  std::size_t open_chunks_;
};

}  // namespace stagger
