#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/error.hpp"

/// How replicas are kept together: strategy, update rule, elastic constants; a value, validated
/// before use.
namespace stagger {

/// Presets over what is pushed, when, and how the center moves.
enum class Strategy : std::uint8_t { interleaved, easgd, local_sgd, bsp, diloco };

/// Which values meet which center (w replica, c center, ' after the round, K workers, step = local
/// optimiser's step). The first is the seed's pair of equations:
///
///   old_center    w' = w - step - alpha*(w - c)       c' = c + beta*(mean_k(w) - c)
///   fresh_center  w' = w - step - alpha*(w - c')      c' the same, from the w before the step
///   post_step     y = w - step;  w' = y - alpha*(y - c');  c' = c + beta*(mean_k(y) - c)
///
/// Strategy diloco is post_step whose center takes an outer Nesterov SGD step on d = c - mean_k(y):
/// v' = outer_momentum*v + d;  c' = c - beta*(d + outer_momentum*v'); beta is its outer learning
/// rate, alpha the share of c' in the replica.
enum class UpdateRule : std::uint8_t { old_center, fresh_center, post_step };

/// Who may send when. none: as soon as the group is ready. slots: sleep until the slot. grants: ask
/// the PS, which hands out turns. slots_grants ("slots+grants"): ask for a turn in the slot; an
/// idle link is given early.
enum class Admission : std::uint8_t { none, slots, grants, slots_grants };

/// Whether a worker has a slot to wait for, and whether the PS hands out turns.
constexpr bool has_slots(Admission admission) {
  return admission == Admission::slots || admission == Admission::slots_grants;
}

constexpr bool has_turns(Admission admission) {
  return admission == Admission::grants || admission == Admission::slots_grants;
}

/// In which iterations of a period a group takes part; ps/phases.hpp says how each rule chooses.
enum class PhaseRule : std::uint8_t { residue, together, contiguous, level };

std::string_view to_string(Strategy strategy);
std::string_view to_string(UpdateRule rule);
std::string_view to_string(Admission admission);
std::string_view to_string(PhaseRule phase);
std::optional<Strategy> parse_strategy(std::string_view text);
std::optional<UpdateRule> parse_update_rule(std::string_view text);
std::optional<Admission> parse_admission(std::string_view text);
std::optional<PhaseRule> parse_phase_rule(std::string_view text);

/// What a user may set; empty optionals are derived by resolve().
struct PolicyRequest {
  Strategy strategy = Strategy::interleaved;
  UpdateRule rule = UpdateRule::old_center;
  std::uint32_t period = 3;                        ///< T
  std::uint32_t workers = 1;                       ///< K
  std::optional<double> alpha = std::nullopt;      ///< default beta / max(K, 2)
  std::optional<double> beta = std::nullopt;       ///< default 0.9
  double learning_rate = 0.05;                     ///< largest of the schedule
  double momentum = 0.0;                           ///< heavy ball; local only
  std::optional<double> curvature = std::nullopt;  ///< L; unknown: lr*L = 1 is assumed
  /// With interleaved and diloco; default phase_of().
  std::optional<PhaseRule> phase = std::nullopt;
  double outer_lr = 0.7;  ///< this and the next two: diloco only
  double outer_momentum = 0.9;
  double mixing = 1.0;
};

/// What the engine obeys.
struct SyncPolicy {
  Strategy strategy = Strategy::interleaved;
  UpdateRule rule = UpdateRule::old_center;
  PhaseRule phase = PhaseRule::residue;
  std::uint32_t period = 3;
  std::uint32_t workers = 1;
  double alpha = 0.225;         ///< diloco: mixing
  double beta = 0.9;            ///< diloco: outer_lr
  double outer_momentum = 0.0;  ///< of the center's step; above 0 under diloco alone

  bool pushes_gradients() const { return strategy == Strategy::bsp; }

  bool operator==(const SyncPolicy&) const = default;
};

struct PolicyVerdict {
  SyncPolicy policy;
  std::vector<std::string> warnings;
  /// beta/(alpha+beta); fresh_center: alpha*(1-beta) for alpha; diloco: q/(mixing + q*(1-mixing)),
  /// q = outer_lr/(1-outer_momentum).
  double effective_learning_rate_share = 1.0;
};

/// The rule by which resolve() will give groups their phases: residue under interleaved and
/// together under diloco unless another is asked for, together under all others.
PhaseRule phase_of(const PolicyRequest& request);

/// Fills in defaults (local_sgd: post_step with alpha = beta = 1; bsp: period 1, phases together)
/// and applies the checks of the stability theory. A radius of diloco that rests on an assumed
/// curvature only warns: with outer momentum that assumption refuses what trains well. Fails with
/// refused; the detail names the keys, the values, the spectral radius where it was computed, and
/// what to do.
Result<PolicyVerdict> resolve(const PolicyRequest& request);

}  // namespace stagger
