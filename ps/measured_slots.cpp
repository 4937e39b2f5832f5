#include "ps/measured_slots.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "observability/check.hpp"

namespace stagger {
namespace {

// A day, as long as any time in a plan may be: what does not fit into it stays at its end.
constexpr double longest_ns = 8.64e13;

/// Nanoseconds from the start of backward.
struct Block {
  std::size_t group = 0;
  double release = 0.0;
  double deadline = 0.0;
  double slot = 0.0;
  double length = 0.0;  ///< of all workers' slots
};

double nanoseconds(Duration duration) {
  return static_cast<double>(duration.count());
}

Duration bounded(double nanoseconds) {
  return saturated(std::round(std::min(nanoseconds, longest_ns)));
}

std::vector<Block> blocks_of(
    const Plan& plan, std::span<const LayerProfile> layers, const MeasuredLink& link) {
  const SyncPolicy& policy = plan.policy;
  std::vector<Block> blocks;
  double backward = 0.0;
  for (std::size_t group = 0; group < plan.groups.size(); ++group) {
    const GroupRange& range = plan.groups[group].range;
    for (std::size_t i = range.layers.begin; i < range.layers.end; ++i)
      backward += nanoseconds(layers[i].backward);
    const double length = std::round(link.cost.need_ns(range.bytes) * (1.0 + link.guard));
    const double slot = std::min(length, std::floor(longest_ns / policy.workers));
    blocks.push_back(
        {.group = group,
         .release = backward,
         .deadline = 0.0,
         .slot = slot,
         .length = slot * policy.workers});
  }
  double forward = 0.0;
  for (std::size_t group = blocks.size(); group-- > 0;) {
    blocks[group].deadline = backward + forward;
    const LayerRange& range = plan.groups[group].range.layers;
    for (std::size_t i = range.begin; i < range.end; ++i)
      forward += nanoseconds(layers[i].forward);
  }
  if (policy.rule != UpdateRule::old_center) return blocks;
  for (Block& block : blocks)
    block.deadline = block.release + policy.period * (forward + backward) - block.length;
  return blocks;
}

SlotWindow slot_window(const Block& block, double begin) {
  const Duration slot = bounded(block.slot);
  return {
      .current = bounded(begin),
      .window = bounded(block.length),
      .slot = slot,
      .delay = bounded(begin - block.release)};
}

/// Blocks of one iteration, in order of release. One at a time; whichever has been released and has
/// the earliest deadline is next.
void plan_iteration(std::vector<Block> blocks, std::vector<SlotWindow>& slots) {
  double now = 0.0;
  while (!blocks.empty()) {
    now = std::max(now, blocks.front().release);
    const auto waiting =
        std::ranges::find_if(blocks, [now](const Block& block) { return block.release > now; });
    const auto next =
        std::min_element(blocks.begin(), waiting, [](const Block& one, const Block& other) {
          return one.deadline < other.deadline;
        });
    slots[next->group] = slot_window(*next, now);
    now += next->length;
    blocks.erase(next);
  }
}

}  // namespace

std::vector<SlotWindow> measured_slots(
    const Plan& plan, std::span<const LayerProfile> layers, const MeasuredLink& link) {
  CHECK(!plan.groups.empty(), "no groups in plan", plan.version);
  CHECK_EQ(plan.groups.front().range.layers.end, layers.size());
  std::map<std::uint32_t, std::vector<Block>> iterations;
  for (const Block& block : blocks_of(plan, layers, link))
    iterations[plan.groups[block.group].phase].push_back(block);
  std::vector<SlotWindow> slots(plan.groups.size());
  for (auto& [phase, blocks] : iterations)
    plan_iteration(std::move(blocks), slots);
  return slots;
}

}  // namespace stagger
