#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "kernels/elastic.hpp"
#include "kernels/rng.hpp"
#include "ps/aggregator.hpp"

/// Many workers' pushes on their way into one Aggregator, for laws that hold whatever comes when.
namespace stagger {

constexpr std::size_t streams_chunk_floats = 16;

struct Scenario {
  std::uint32_t workers = 1;
  std::uint32_t period = 1;
  std::vector<std::size_t> group_floats;
  std::size_t early_chunks_max = 0;
  std::uint64_t last_iteration = 4;
  bool replies_before_forward = false;  ///< fresh_center and post_step; else old_center
  bool rank_order = false;              ///< as the plan has it; else any
  std::uint32_t deaths = 0;
  std::uint64_t seed = 1;
};

inline Arena initial_center(const Scenario& scenario) {
  std::vector<ParameterInfo> parameters;
  std::vector<LayerRange> ranges(scenario.group_floats.size());
  for (std::size_t layer = 0; layer < ranges.size(); ++layer) {
    const std::size_t group = ranges.size() - 1 - layer;
    parameters.push_back(
        {.name = "p" + std::to_string(layer),
         .shape = {scenario.group_floats[group]},
         .layer = layer});
    ranges[group] = {.begin = layer, .end = layer + 1};
  }
  Arena arena(ArenaLayout(parameters, ranges));
  RandomSequence random(scenario.seed, fnv1a("center"));
  for (std::size_t group = 0; group < ranges.size(); ++group) {
    for (float& value : arena.group(group))
      value = random.uniform() - 0.5F;
  }
  return arena;
}

inline Plan make_plan(const Scenario& scenario) {
  Plan plan;
  plan.policy.period = scenario.period;
  plan.policy.workers = scenario.workers;
  plan.groups.resize(scenario.group_floats.size());
  set_phases(plan);
  return plan;
}

/// Workers, their connections and their sessions before one Aggregator, one atomic step at a time.
///
/// A connection is a FIFO stream; a session reads it, offers each chunk, and holds one that finds
/// no room, as ps/session.cpp does. All workers begin exchanges in one order, each when the replies
/// that it needs have come; between begin and the wire an exchange may be delayed for as long as it
/// likes (slots), and chunks of several exchanges mix.
class Streams {
 public:
  explicit Streams(Scenario scenario)
      : scenario_(std::move(scenario)),
        random_(scenario_.seed, fnv1a("steps")),
        plan_(make_plan(scenario_)),
        center_(initial_center(scenario_), streams_chunk_floats),
        workers_(scenario_.workers) {
    plans_.add(plan_);
    aggregator_.emplace(
        center_,
        plans_,
        Aggregator::Options{
            .early_chunks_max = scenario_.early_chunks_max,
            .last_iteration = Iteration(scenario_.last_iteration),
            .final_round = true,
            .learning_rate = {},
            .order =
                [this](const Plan& /*plan*/, RoundId round) {
                  return order(round);
                }},
        [this](WorkerId worker, Iteration /*iteration*/) {
          return workers_[worker.value()].declared_gone;
        });
    for (std::uint64_t j = 1; j <= scenario_.last_iteration; ++j) {
      for (const GroupId group : due_groups(plan_, Iteration(j))) {
        program_.push_back({.group = group, .iteration = Iteration(j)});
      }
    }
    for (GroupId group; group.value() < center_.groups(); group = group.next()) {
      program_.push_back({.group = group, .iteration = Iteration(scenario_.last_iteration + 1)});
      for (std::uint32_t chunk = 0; chunk < center_.chunks(group); ++chunk) {
        const auto values = center_.chunk(group, chunk).span();
        oracle_[{group, chunk}] = {values.begin(), values.end()};
      }
    }
  }

  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void run() {
    for (std::uint32_t i = 0; i < scenario_.deaths; ++i) {
      die_at_.insert(random_.below(static_cast<std::uint32_t>(20 * program_.size())));
    }
    for (std::uint64_t step = 0; !finished(); ++step) {
      if (die_at_.contains(step)) kill();
      const auto actions = possible_actions();
      RC_ASSERT(!actions.empty());  // else: deadlock
      act(actions[random_.below(static_cast<std::uint32_t>(actions.size()))]);
      RC_ASSERT(aggregator_->intake().kept() <= scenario_.early_chunks_max);
    }
    RC_ASSERT(aggregator_->waiting().empty());
    RC_ASSERT(aggregator_->intake().kept() == 0U);
    RC_ASSERT(aggregator_->intake().holding().empty());
    RC_ASSERT(aggregator_->rounds_closed() == program_.size());
    std::size_t chunks = 0;
    for (const RoundId& round : program_)
      chunks += center_.chunks(round.group);
    RC_ASSERT(closed_.size() == chunks);
  }

  bool shed_something() const { return shed_something_; }

 private:
  struct Exchange {
    RoundId round;
    std::uint32_t next_chunk = 0;
  };

  struct Worker {
    std::size_t begun = 0;            ///< how far it is in the common program
    std::vector<Exchange> exchanges;  ///< begun, and not yet wholly on the wire
    std::set<GroupId> awaited;        ///< replies
    std::deque<ChunkId> wire;
    std::optional<ChunkId> held;
    ChunkBuffer held_values;
    bool retry = false;
    bool dead = false;
    bool declared_gone = false;
  };

  struct Action {
    enum class Kind : std::uint8_t { begin, send, read, retry, declare };
    Kind kind;
    WorkerId worker;
    std::size_t exchange = 0;
  };

  Worker& at(WorkerId worker) { return workers_[worker.value()]; }

  bool finished() const {
    return std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
      if (worker.dead) return worker.declared_gone;
      return worker.begun == program_.size() && worker.awaited.empty();
    });
  }

  bool may_begin(const Worker& worker) const {
    if (worker.begun == program_.size()) return false;
    const RoundId round = program_[worker.begun];
    const bool first = worker.begun == 0 || program_[worker.begun - 1].iteration != round.iteration;
    const bool all = scenario_.replies_before_forward || aggregator_->is_final(round.iteration);
    if (first && all) return worker.awaited.empty();
    return !worker.awaited.contains(round.group);
  }

  std::vector<Action> possible_actions() const {
    using Kind = Action::Kind;
    std::vector<Action> actions;
    for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
      const Worker& worker = workers_[rank];
      const WorkerId id(rank);
      if (worker.declared_gone) continue;
      if (!worker.dead && may_begin(worker)) actions.push_back({.kind = Kind::begin, .worker = id});
      for (std::size_t i = 0; i < worker.exchanges.size(); ++i) {
        actions.push_back({.kind = Kind::send, .worker = id, .exchange = i});
      }
      if (!worker.held && !worker.wire.empty())
        actions.push_back({.kind = Kind::read, .worker = id});
      if (worker.held && worker.retry) actions.push_back({.kind = Kind::retry, .worker = id});
      if (worker.dead) actions.push_back({.kind = Kind::declare, .worker = id});
    }
    return actions;
  }

  void act(Action action) {
    Worker& worker = at(action.worker);
    switch (action.kind) {
      case Action::Kind::begin:
        worker.awaited.insert(program_[worker.begun].group);
        worker.exchanges.push_back({.round = program_[worker.begun++]});
        break;
      case Action::Kind::send: {
        Exchange& exchange = worker.exchanges[action.exchange];
        worker.wire.push_back({exchange.round, exchange.next_chunk++});
        if (exchange.next_chunk == center_.chunks(exchange.round.group)) {
          worker.exchanges.erase(
              worker.exchanges.begin() + static_cast<std::ptrdiff_t>(action.exchange));
        }
        break;
      }
      case Action::Kind::read:
        read(action.worker);
        break;
      case Action::Kind::retry:
        retry(action.worker);
        break;
      case Action::Kind::declare:
        declare_gone(action.worker);
        break;
    }
  }

  /// The plan's order is the law's premise, not its subject: any order of a round must do.
  std::vector<WorkerId> order(RoundId round) const {
    RandomSequence random(scenario_.seed, round.group.value() + 100 * round.iteration.value());
    std::vector<WorkerId> workers = round_order(plan_, round);
    if (scenario_.rank_order) return workers;
    for (auto last = static_cast<std::uint32_t>(workers.size()); last > 1; --last) {
      std::swap(workers[random.below(last)], workers[last - 1]);
    }
    return workers;
  }

  /// What the worker pushes; now and then it is not finite.
  std::vector<float> pushed(WorkerId worker, ChunkId id) const {
    const std::string name =
        std::to_string(worker.value()) + " " + std::to_string(id.round.group.value()) + " " +
        std::to_string(id.round.iteration.value()) + " " + std::to_string(id.chunk);
    RandomSequence random(scenario_.seed, fnv1a(name));
    std::vector<float> values(center_.chunk_size(id.round.group, id.chunk));
    for (float& value : values)
      value = random.uniform() - 0.5F;
    if (random.below(29) == 0) values.back() = std::numeric_limits<float>::infinity();
    return values;
  }

  void read(WorkerId worker) {
    const ChunkId id = at(worker).wire.front();
    at(worker).wire.pop_front();
    const ChunkHead head{.id = id, .plan = plan_.version};
    RC_ASSERT(aggregator_->check(worker, head).has_value());
    ChunkBuffer buffer = center_.pool().acquire();
    const auto values = pushed(worker, id);
    std::copy(values.begin(), values.end(), buffer->span().begin());
    place(worker, id, std::move(buffer));
  }

  void retry(WorkerId worker) {
    aggregator_->intake().unhold(worker);
    const ChunkId id = *at(worker).held;
    at(worker).held.reset();
    place(worker, id, std::move(at(worker).held_values));
  }

  void place(WorkerId worker, ChunkId id, ChunkBuffer values) {
    switch (aggregator_->offer(worker, id, values)) {
      case Aggregator::Offer::taken:
      case Aggregator::Offer::kept:
        RC_ASSERT(present_[id].insert(worker).second);
        break;
      case Aggregator::Offer::held:
        aggregator_->intake().hold(worker, id);
        at(worker).held = id;
        at(worker).held_values = std::move(values);
        at(worker).retry = false;
        break;
      case Aggregator::Offer::shed:
        shed_something_ = true;
        break;
      case Aggregator::Offer::skipped:
        break;
      case Aggregator::Offer::repeated:
        RC_ASSERT(at(worker).declared_gone);
        break;
    }
    moved();
  }

  void moved() {
    for (const ChunkId id : aggregator_->take_closed())
      close(id);
    for (const auto& [worker, id] : aggregator_->take_resends()) {
      if (!at(worker).dead) at(worker).wire.push_back(id);
    }
    for (const auto& [worker, id] : aggregator_->intake().holding()) {
      if (aggregator_->can_place(worker, id)) at(worker).retry = true;
    }
    if (const auto victim = aggregator_->take_victim()) at(*victim).retry = true;
  }

  /// The sum in planned order of whoever contributed, whatever the order of arrival: bit for bit.
  void close(ChunkId id) {
    RC_ASSERT(closed_.insert(id).second);
    std::vector<float>& expected = oracle_[{id.round.group, id.chunk}];
    std::vector<float> sum;
    for (const WorkerId worker : order(id.round)) {
      if (!present_[id].contains(worker)) continue;
      const auto values = pushed(worker, id);
      if (sum.empty()) {
        sum = values;
      } else {
        reference::accumulate(sum, values);
      }
    }
    const auto& snapshot = center_.chunk(id.round.group, id.chunk);
    RC_ASSERT(snapshot.iteration == id.round.iteration);
    RC_ASSERT(snapshot.present == present_[id].size());
    if (!sum.empty()) {
      const auto beta = static_cast<float>(plan_.policy.beta);
      reference::elastic_center(sum, expected, beta, present_[id].size(), scenario_.workers);
      expected = sum;
    }
    RC_ASSERT(std::equal(expected.begin(), expected.end(), snapshot.span().begin()));
    if (++chunks_closed_[id.round] < center_.chunks(id.round.group)) return;
    for (Worker& worker : workers_)
      worker.awaited.erase(id.round.group);
  }

  /// Its process ends; a part of what it sent still arrives. One worker always stays.
  void kill() {
    std::vector<std::size_t> alive;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].dead) alive.push_back(i);
    }
    if (alive.size() < 2) return;
    Worker& worker = workers_[alive[random_.below(static_cast<std::uint32_t>(alive.size()))]];
    worker.dead = true;
    worker.exchanges.clear();
    worker.wire.resize(random_.below(static_cast<std::uint32_t>(worker.wire.size()) + 1));
  }

  void declare_gone(WorkerId worker) {
    at(worker).declared_gone = true;
    aggregator_->skip_absent(worker);
    moved();
    if (at(worker).held) retry(worker);
    at(worker).wire.clear();
    aggregator_->forget(worker);
    moved();
  }

  Scenario scenario_;
  RandomSequence random_;
  Plan plan_;
  PlanHistory plans_;
  Center center_;
  std::optional<Aggregator> aggregator_;
  std::vector<Worker> workers_;
  std::vector<RoundId> program_;
  std::set<std::uint64_t> die_at_;
  std::map<ChunkId, std::set<WorkerId>> present_;
  std::set<ChunkId> closed_;
  std::map<RoundId, std::uint32_t> chunks_closed_;
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<float>> oracle_;
  bool shed_something_ = false;
};

}  // namespace stagger
