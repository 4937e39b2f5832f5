#include "ps/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "observability/check.hpp"

namespace stagger {
namespace {

// Enough for a transient to die out; a backlog that grows for longer is the link bound's business.
constexpr int periods_max = 16;

Duration rounded(double nanoseconds) {
  return saturated(std::round(nanoseconds));
}

/// Nanoseconds as doubles: whole numbers, exact for a hundred days.
struct GroupFacts {
  std::uint64_t iteration = 1;  ///< of the period
  double forward_before = 0.0;  ///< the forward's way to the group
  double backward_until = 0.0;  ///< backward up to and with the group
  double need = 0.0;            ///< of one push
  double delay = 0.0;           ///< from ready to the first slot
  double slot = 0.0;            ///< what a worker waits for each one before it
};

struct ComputeFacts {
  double forward = 0.0;
  double backward = 0.0;

  double total() const { return forward + backward; }
};

std::vector<GroupFacts> group_facts(
    const Plan& plan, std::span<const LayerProfile> layers, const LinkCost& link) {
  std::vector<GroupFacts> facts(plan.groups.size());
  double backward = 0.0;
  for (std::size_t group = 0; group < facts.size(); ++group) {
    const PlannedGroup& planned = plan.groups[group];
    for (std::size_t i = planned.range.layers.begin; i < planned.range.layers.end; ++i)
      backward += static_cast<double>(layers[i].backward.count());
    facts[group] = {
        .iteration = planned.phase > 0 ? planned.phase : plan.policy.period,
        .forward_before = 0.0,
        .backward_until = backward,
        .need = link.need_ns(planned.range.bytes),
        .delay = plan.admission == Admission::slots
                     ? static_cast<double>(planned.slot.delay.count())
                     : 0.0,
        .slot = plan.admission == Admission::slots ? static_cast<double>(planned.slot.slot.count())
                                                   : 0.0};
  }
  double forward = 0.0;
  for (std::size_t group = facts.size(); group-- > 0;) {
    facts[group].forward_before = forward;
    const LayerRange& range = plan.groups[group].range.layers;
    for (std::size_t i = range.begin; i < range.end; ++i)
      forward += static_cast<double>(layers[i].forward.count());
  }
  return facts;
}

/// Walks through periods; only iterations that carry traffic cost anything.
class Forecast {
 public:
  Forecast(std::vector<GroupFacts> facts, const ComputeFacts& compute, const SyncPolicy& policy)
      : facts_(std::move(facts)),
        compute_(compute),
        policy_(policy),
        others_(policy.workers - 1.0),
        reply_end_(facts_.size()),
        exposed_(facts_.size()),
        rounds_(facts_.size()) {
    for (std::size_t group = 0; group < facts_.size(); ++group)
      order_.push_back(group);
    std::ranges::stable_sort(
        order_, {}, [this](std::size_t group) { return facts_[group].iteration; });
  }

  void run() {
    std::vector<RoundPrediction> before;
    for (int period = 0; period < periods_max && before != rounds_; ++period) {
      before = rounds_;
      run_period();
    }
  }

  const std::vector<RoundPrediction>& rounds() const { return rounds_; }

  double exposed() const {
    double sum = 0.0;
    for (const double wait : exposed_)
      sum += wait;
    return sum;
  }

 private:
  void run_period() {
    for (std::size_t first = 0; first < order_.size();) {
      const std::uint64_t iteration = facts_[order_[first]].iteration;
      std::size_t last = first;
      while (last < order_.size() && facts_[order_[last]].iteration == iteration)
        ++last;
      advance_to(iteration);
      run_iteration(std::span(order_).subspan(first, last - first));
      first = last;
    }
  }

  /// From the end of the last iteration that carried traffic to the start of the given one.
  void advance_to(std::uint64_t iteration) {
    const std::uint64_t steps =
        iteration > at_ ? iteration - at_ : iteration + policy_.period - at_;
    if (steps > 1) {
      start_ += forward_wait_ + static_cast<double>(steps - 1) * compute_.total();
      forward_wait_ = 0.0;
    }
    at_ = iteration;
  }

  void run_iteration(std::span<const std::size_t> groups) {
    double backward = start_ + forward_wait_ + compute_.forward;
    for (const std::size_t group : groups) {
      if (policy_.rule == UpdateRule::old_center) {
        const double due = backward + facts_[group].backward_until;
        exposed_[group] = std::max(0.0, reply_end_[group] - due);
        backward += exposed_[group];
      }
      exchange(group, backward + facts_[group].backward_until);
    }
    start_ = backward + compute_.backward;
    forward_wait_ = 0.0;
    if (policy_.rule != UpdateRule::old_center) wait_in_forward(groups);
    for (const std::size_t group : groups)
      rounds_[group].exposed = rounded(exposed_[group]);
  }

  void exchange(std::size_t group, double ready) {
    const GroupFacts& facts = facts_[group];
    const double slotted = ready + facts.delay;
    const double first = std::max(slotted, push_free_);
    const double last = std::max(first + others_ * facts.need, slotted + others_ * facts.slot);
    push_free_ = last + facts.need;
    reply_free_ = std::max(push_free_, reply_free_) + (others_ + 1.0) * facts.need;
    reply_end_[group] = reply_free_;
    rounds_[group] = {
        .iteration = Iteration(facts.iteration),
        .ready = rounded(ready - start_),
        .push_start = rounded(first - start_),
        .push_end = rounded(push_free_ - start_),
        .reply_end = rounded(reply_free_ - start_),
        .exposed = {},
        .need = rounded((others_ + 1.0) * facts.need)};
  }

  /// The forward after the iteration, from the input side.
  void wait_in_forward(std::span<const std::size_t> groups) {
    for (std::size_t i = groups.size(); i-- > 0;) {
      const std::size_t group = groups[i];
      const double arrival = start_ + forward_wait_ + facts_[group].forward_before;
      exposed_[group] = std::max(0.0, reply_end_[group] - arrival);
      forward_wait_ += exposed_[group];
    }
  }

  std::vector<GroupFacts> facts_;
  ComputeFacts compute_;
  SyncPolicy policy_;
  double others_;                   ///< workers beside the first
  std::vector<std::size_t> order_;  ///< groups, by the iteration in which they are due
  std::uint64_t at_ = 0;            ///< iteration of the period
  double start_ = 0.0;              ///< of the next iteration; of this one while it runs
  double forward_wait_ = 0.0;       ///< in the forward of that iteration
  double push_free_ = 0.0;
  double reply_free_ = 0.0;
  std::vector<double> reply_end_;
  std::vector<double> exposed_;
  std::vector<RoundPrediction> rounds_;
};

}  // namespace

Prediction predict(const Plan& plan, std::span<const LayerProfile> layers, const LinkCost& link) {
  CHECK_LE(1U, plan.policy.workers);
  CHECK(!plan.groups.empty(), "no groups in plan", plan.version);
  CHECK_EQ(plan.groups.front().range.layers.end, layers.size());
  ComputeFacts compute;
  for (const LayerProfile& layer : layers) {
    compute.forward += static_cast<double>(layer.forward.count());
    compute.backward += static_cast<double>(layer.backward.count());
  }
  const std::vector<GroupFacts> facts = group_facts(plan, layers, link);
  double busy = 0.0;
  for (const GroupFacts& group : facts)
    busy += group.need * plan.policy.workers;
  Forecast forecast(facts, compute, plan.policy);
  forecast.run();
  const double period = plan.policy.period;
  const double period_time = std::max(period * compute.total() + forecast.exposed(), busy);
  return {
      .rounds = forecast.rounds(),
      .compute = rounded(compute.total()),
      .iteration = rounded(period_time / period),
      .exposed = rounded(period_time / period - compute.total()),
      .link_utilisation = period_time > 0 ? busy / period_time : 0.0,
      .hidden = period_time <= period * compute.total()};
}

}  // namespace stagger
