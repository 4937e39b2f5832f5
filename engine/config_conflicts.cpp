#include "engine/config_conflicts.hpp"

#include <string_view>

#include <fmt/format.h>

#include "engine/config_value.hpp"
#include "engine/replay_profile.hpp"

namespace stagger {
namespace {

/// What a replayed run cannot do without.
std::optional<std::string> find_replay_conflict(const Config& config) {
  if (config.backend.kind != BackendKind::replay) return std::nullopt;
  if (config.backend.profile.empty()) {
    return fmt::format(
        "backend.profile: missing, and backend.name = \"replay\" has nothing else to go by: give "
        "a shipped profile ({}) or the path of a CSV file",
        join_names(shipped_profile_names()));
  }
  if (config.job.iterations == 0) {
    return "job.iterations: missing: backend.name = \"replay\" reads no data, so it has no epochs; "
           "give the number of iterations";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_config_conflict(const Config& config) {
  const TimeoutsConfig& timeouts = config.timeouts;
  if (timeouts.worker <= 2 * timeouts.heartbeat) {
    return fmt::format(
        "timeouts.worker_s: must be above 2*timeouts.heartbeat_s, so that one lost heartbeat is "
        "no death: {:g} > 2*{:g} does not hold",
        to_seconds(timeouts.worker),
        to_seconds(timeouts.heartbeat));
  }
  if (timeouts.warning >= timeouts.worker) {
    return fmt::format(
        "timeouts.warning_s: must be below timeouts.worker_s, so that a warning comes before the "
        "worker is given up: {:g} < {:g} does not hold",
        to_seconds(timeouts.warning),
        to_seconds(timeouts.worker));
  }
  if (config.wire.early_bytes_max < config.wire.chunk_bytes) {
    return fmt::format(
        "wire.early_bytes_max: must hold one chunk: {} >= wire.chunk_bytes = {} does not hold",
        config.wire.early_bytes_max,
        config.wire.chunk_bytes);
  }
  return find_replay_conflict(config);
}

std::optional<std::string> find_link_need(const Config& config) {
  if (needs_link(config.groups.planner)) {
    return fmt::format("groups.planner: \"{}\"", to_string(config.groups.planner));
  }
  if (!config.sync.period && config.sync.strategy != Strategy::bsp) {
    return "sync.period: \"auto\"";
  }
  if (config.slots.rule == SlotRule::measured) return "slots.rule: \"measured\"";
  return std::nullopt;
}

}  // namespace stagger
