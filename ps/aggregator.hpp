#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/center.hpp"
#include "ps/intake.hpp"
#include "ps/plan.hpp"
#include "ps/round.hpp"

namespace stagger {

/// All rounds of a shard: checks pushes, sums them in planned order, closes chunks into the center.
/// No Asio, no clock.
///
/// For:     Session (offers chunks), Server (sends what closed, skips absent workers).
/// Owner:   the server. Thread: the loop.
/// Rules:   at most one round of a group is open: nobody can push the next before having received
/// this one's reply. Failure: what a worker may get wrong is a refusal with a reason; nothing of it
/// reaches the sums.
class Aggregator {
 public:
  struct Options {
    std::size_t early_chunks_max = 256;  ///< kept before their turn; from wire.early_bytes_max
    Iteration last_iteration;            ///< rounds of last_iteration + 1 are the final ones
    bool final_round = true;
    std::function<double(Iteration)> learning_rate;  ///< bsp: the PS takes the step
    /// In which a round's values are summed; names each of its workers once.
    std::function<std::vector<WorkerId>(const Plan&, RoundId)> order = round_order;
  };

  /// What happened to an offered chunk.
  enum class Offer : std::uint8_t {
    taken,     ///< summed, with what waited behind it
    kept,      ///< until its turn
    held,      ///< no room: the session keeps the buffer, stops reading, and offers again when told
    shed,      ///< dropped; resend_wanted() will name it
    repeated,  ///< came before: applied once
    skipped,   ///< not finite: this chunk of this worker counts as absent
  };

  /// `absent(worker, iteration)`: whether rounds of that iteration go on without the worker.
  using Absent = std::function<bool(WorkerId, Iteration)>;

  Aggregator(Center& center, const PlanHistory& plans, Options options, Absent absent);

  /// Before the payload is received: whether such a chunk may come. Opens the round when it is the
  /// first of it. The reason of a refusal names group, iteration, chunk and what was expected. A
  /// repeated push of the round that closed last is welcome (its reply may have been lost).
  Result<void> check(WorkerId worker, const ChunkHead& head);

  /// REQUIRES check() passed. Takes `values` unless the answer is held (or repeated, shed, skipped,
  /// when it is dropped).
  Offer offer(WorkerId worker, ChunkId id, ChunkBuffer& values);

  /// No round of iterations for which absent(worker, iteration) now holds waits for it any longer.
  /// Chunks that came count.
  void skip_absent(WorkerId worker);

  /// Chunks that closed since the last call, in the order in which they closed: to be sent to the
  /// round's workers.
  std::vector<ChunkId> take_closed() { return std::exchange(closed_, {}); }

  /// Shed chunks whose turn has come, each once.
  std::vector<std::pair<WorkerId, ChunkId>> take_resends() { return std::exchange(resends_, {}); }

  /// A worker whose held chunk must be offered again because it will be shed (it is then no longer
  /// held).
  std::optional<WorkerId> take_victim();

  /// The worker's session has ended: it holds nothing any longer.
  void forget(WorkerId worker);

  bool is_final(Iteration iteration) const;

  void set_last_iteration(Iteration last) { options_.last_iteration = last; }

  Intake& intake() { return intake_; }

  /// Whether a held chunk would now be answered with something else than held.
  bool can_place(WorkerId worker, ChunkId id) const;

  /// Open rounds with the workers that each waits for.
  struct Waiting {
    RoundId round;
    std::vector<WorkerId> missing;
  };

  std::vector<Waiting> waiting() const;

  std::uint64_t rounds_closed() const { return rounds_closed_; }

 private:
  struct OpenRound {
    Round round;
    std::vector<ChunkBuffer> sums;                      // by chunk
    std::vector<std::map<WorkerId, ChunkBuffer>> kept;  // by chunk
    std::vector<std::map<WorkerId, bool>> shed;         // by chunk; true once asked for again
    std::uint32_t chunks_closed = 0;
  };

  struct GroupState {
    Iteration last_closed;
    std::optional<OpenRound> open;
  };

  const Plan& plan_of(Iteration iteration) const;
  void open(GroupState& state, RoundId id);
  void sum(OpenRound& open, WorkerId worker, std::uint32_t chunk, ChunkBuffer values);
  void advance(GroupState& state, std::uint32_t chunk);

  Center& center_;
  const PlanHistory& plans_;
  Options options_;
  Absent absent_;
  Intake intake_;
  std::vector<GroupState> groups_;
  std::vector<ChunkId> closed_;
  std::vector<std::pair<WorkerId, ChunkId>> resends_;
  std::optional<WorkerId> victim_;
  std::uint64_t rounds_closed_ = 0;
};

}  // namespace stagger
