#include "ps/policy.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ps/stability.hpp"

namespace stagger {
namespace {

Error refuse(std::string detail) {
  return Error{.code = Errc::refused, .detail = std::move(detail)};
}

bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

std::optional<std::string> find_outer_problem(const PolicyRequest& request) {
  if (!positive(request.outer_lr)) {
    return fmt::format("sync.outer_lr = {:g}: must be a finite number above 0", request.outer_lr);
  }
  const double momentum = request.outer_momentum;
  if (!std::isfinite(momentum) || momentum < 0 || momentum >= 1) {
    return fmt::format("sync.outer_momentum = {:g}: must lie in [0, 1)", momentum);
  }
  if (!positive(request.mixing) || request.mixing > 1) {
    return fmt::format("sync.mixing = {:g}: must lie in (0, 1]", request.mixing);
  }
  return std::nullopt;
}

/// What is wrong with a single value, whatever the others are.
std::optional<std::string> find_range_problem(const PolicyRequest& request) {
  if (request.workers < 1) return "cluster.workers = 0: must be at least 1";
  if (request.period < 1) return "sync.period = 0: must be at least 1";
  if (!positive(request.learning_rate)) {
    return fmt::format(
        "optimizer.lr = {:g}: must be a finite number above 0", request.learning_rate);
  }
  if (!std::isfinite(request.momentum) || request.momentum < 0 || request.momentum >= 1) {
    return fmt::format("optimizer.momentum = {:g}: must lie in [0, 1)", request.momentum);
  }
  if (request.curvature && !positive(*request.curvature)) {
    return fmt::format(
        "sync.curvature = {:g}: must be a finite number above 0; remove it if "
        "it is not known",
        *request.curvature);
  }
  if (request.strategy == Strategy::diloco) return find_outer_problem(request);
  if (request.strategy == Strategy::bsp) return std::nullopt;  // has neither alpha nor beta
  if (request.alpha && (!std::isfinite(*request.alpha) || *request.alpha < 0)) {
    return fmt::format("sync.alpha = {:g}: must be a finite number, 0 or above", *request.alpha);
  }
  if (request.beta && (!positive(*request.beta) || *request.beta >= 2)) {
    return fmt::format("sync.beta = {:g}: must lie above 0 and below 2", *request.beta);
  }
  return std::nullopt;
}

std::optional<std::string> find_preset_conflict(const PolicyRequest& request) {
  if (request.strategy != Strategy::local_sgd) return std::nullopt;
  const auto conflict = [](std::string_view key, double value) {
    return fmt::format(
        "{} = {:g}: strategy local_sgd is plain averaging, with sync.alpha = sync.beta = 1; "
        "remove {}, or use sync.strategy = \"easgd\"",
        key,
        value,
        key);
  };
  if (request.alpha && *request.alpha != 1.0) return conflict("sync.alpha", *request.alpha);
  if (request.beta && *request.beta != 1.0) return conflict("sync.beta", *request.beta);
  return std::nullopt;
}

SyncPolicy fill_in(const PolicyRequest& request) {
  SyncPolicy policy{
      .strategy = request.strategy,
      .rule = request.rule,
      .phase = phase_of(request),
      .period = request.period,
      .workers = request.workers,
      .alpha = 1.0,
      .beta = 1.0};
  if (request.strategy == Strategy::bsp) policy.period = 1;
  if (request.strategy == Strategy::bsp || request.strategy == Strategy::local_sgd) {
    policy.rule = UpdateRule::post_step;
    return policy;
  }
  if (request.strategy == Strategy::diloco) {
    policy.rule = UpdateRule::post_step;
    policy.alpha = request.mixing;
    policy.beta = request.outer_lr;
    policy.outer_momentum = request.outer_momentum;
    return policy;
  }
  policy.beta = request.beta.value_or(0.9);
  policy.alpha = request.alpha.value_or(policy.beta / std::max(request.workers, 2U));
  return policy;
}

/// What no curvature could make stable: flat directions alone demand these.
std::optional<std::string> find_sum_problem(const SyncPolicy& policy) {
  const double alpha = policy.alpha;
  const double beta = policy.beta;
  if (policy.rule == UpdateRule::old_center && alpha + beta >= 2) {
    return fmt::format(
        "sync.alpha = {:g}, sync.beta = {:g}: their sum must be below 2 with sync.rule = "
        "\"old_center\", it is {:g}; lower sync.alpha",
        alpha,
        beta,
        alpha + beta);
  }
  if (policy.rule == UpdateRule::fresh_center && (alpha >= 2 || alpha * (1 - beta) + beta >= 2)) {
    return fmt::format(
        "sync.alpha = {:g}, sync.beta = {:g}: sync.alpha and alpha*(1 - beta) + beta must both "
        "be below 2 with sync.rule = \"fresh_center\"; lower sync.alpha",
        alpha,
        beta);
  }
  return std::nullopt;
}

std::string settings_text(const SyncPolicy& policy, const PolicyRequest& request) {
  std::string text;
  if (policy.strategy == Strategy::diloco) {
    text = fmt::format(
        "sync.outer_lr = {:g}, sync.outer_momentum = {:g}, sync.mixing = {:g}, sync.period = {}, ",
        policy.beta,
        policy.outer_momentum,
        policy.alpha,
        policy.period);
  } else if (!policy.pushes_gradients()) {
    text = fmt::format(
        "sync.alpha = {:g}, sync.beta = {:g}, sync.rule = \"{}\", sync.period = {}, ",
        policy.alpha,
        policy.beta,
        to_string(policy.rule),
        policy.period);
  }
  return text + fmt::format(
                    "optimizer.lr = {:g}, optimizer.momentum = {:g}",
                    request.learning_rate,
                    request.momentum);
}

std::string curvature_text(const PolicyRequest& request, double lr_times_curvature) {
  if (!request.curvature) return "lr*L up to 1 (assumed: sync.curvature is not set)";
  return fmt::format(
      "lr*L up to {:g} (sync.curvature = {:g})", lr_times_curvature, *request.curvature);
}

std::string advice(
    const SyncPolicy& policy, const PolicyRequest& request, double lr_times_curvature) {
  if (request.momentum == 0 && lr_times_curvature >= 2) {
    return fmt::format(
        "lower optimizer.lr below 2/sync.curvature = {:g}", 2 / request.curvature.value_or(1.0));
  }
  if (policy.pushes_gradients()) return "lower optimizer.lr or optimizer.momentum";
  if (policy.strategy == Strategy::diloco) {
    return "lower sync.outer_momentum, sync.outer_lr or optimizer.momentum, or raise sync.period";
  }
  if (policy.rule == UpdateRule::post_step) {
    return "set sync.alpha and sync.beta to at most 1, or lower optimizer.lr";
  }
  const double slack = 2 - lr_times_curvature;
  if (request.momentum > 0 || !(slack > 0)) {
    return "lower sync.alpha (0.5 or less is mostly stable), optimizer.lr or "
           "optimizer.momentum, or raise sync.period";
  }
  double limit = (2 - policy.beta) * slack / 2;
  if (policy.rule == UpdateRule::fresh_center) {
    if (policy.beta > 1) return "lower sync.beta to at most 1, or sync.alpha";
    limit = policy.beta < 1 ? std::min(slack, limit / (1 - policy.beta)) : slack;
  }
  return fmt::format("lower sync.alpha (below {:g} is stable for certain)", limit);
}

/// Fails, warns, or is content.
Result<void> check_stability(const PolicyRequest& request, PolicyVerdict& verdict) {
  const SyncPolicy& policy = verdict.policy;
  const double lr_times_curvature =
      request.curvature ? request.learning_rate * *request.curvature : 1.0;
  const StabilityQuery query{
      .rule = policy.rule,
      .alpha = policy.alpha,
      .beta = policy.beta,
      .period = policy.period,
      .momentum = request.momentum,
      .outer_momentum = policy.outer_momentum};
  if (certified_stable(query, lr_times_curvature)) return {};
  const double radius = spectral_radius_max(query, lr_times_curvature);
  if (!(radius < 1)) {
    std::string unstable = fmt::format(
        "{}: unstable: spectral radius {:.6g}, which must be below 1, for {}; {}",
        settings_text(policy, request),
        radius,
        curvature_text(request, lr_times_curvature),
        advice(policy, request, lr_times_curvature));
    // Nesterov steps on top of heavy ball are unstable at lr*L = 1 and train well below it.
    if (policy.strategy != Strategy::diloco || request.curvature) {
      return refuse(std::move(unstable));
    }
    verdict.warnings.push_back(std::move(unstable));
    return {};
  }
  // Synchronous SGD is one optimiser on one copy: the radius is the proof.
  if (policy.pushes_gradients()) return {};
  verdict.warnings.push_back(fmt::format(
      "{}: no proof of stability covers {}; on a quadratic the spectral radius is {:.6g} for "
      "{}, which is stable while groups are weakly coupled",
      settings_text(policy, request),
      request.momentum > 0 || policy.outer_momentum > 0 ? "momentum" : "these values",
      radius,
      curvature_text(request, lr_times_curvature)));
  return {};
}

void warn_about_ignored_rates(const PolicyRequest& request, std::vector<std::string>& warnings) {
  const bool outer = request.strategy == Strategy::diloco;
  const PolicyRequest defaults;
  if (outer && (request.alpha || request.beta)) {
    warnings.emplace_back(
        "sync.alpha and sync.beta have no effect with strategy diloco, which has sync.mixing and "
        "sync.outer_lr");
  }
  const auto ignored = [&](std::string_view key, double value, double initial) {
    if (outer || value == initial) return;
    warnings.push_back(fmt::format(
        "{} = {:g} has no effect with strategy {}: it belongs to diloco",
        key,
        value,
        to_string(request.strategy)));
  };
  ignored("sync.outer_lr", request.outer_lr, defaults.outer_lr);
  ignored("sync.outer_momentum", request.outer_momentum, defaults.outer_momentum);
  ignored("sync.mixing", request.mixing, defaults.mixing);
}

void warn_about_ignored(const PolicyRequest& request, std::vector<std::string>& warnings) {
  if (request.phase && *request.phase != phase_of(request)) {
    warnings.push_back(fmt::format(
        "sync.phases = \"{}\" has no effect with strategy {}: all groups are exchanged together",
        to_string(*request.phase),
        to_string(request.strategy)));
  }
  warn_about_ignored_rates(request, warnings);
  if (request.strategy != Strategy::bsp) return;
  if (request.period != 1 && request.period != PolicyRequest{}.period) {
    warnings.push_back(fmt::format(
        "sync.period = {}: strategy bsp exchanges in every iteration; period 1 is used",
        request.period));
  }
  if (request.alpha || request.beta) {
    warnings.emplace_back("sync.alpha and sync.beta have no effect with strategy bsp");
  }
}

void measure_pull(PolicyVerdict& verdict) {
  const SyncPolicy& policy = verdict.policy;
  if (policy.strategy == Strategy::diloco) {
    const double outer = policy.beta / (1 - policy.outer_momentum);
    verdict.effective_learning_rate_share = outer / (policy.alpha + outer * (1 - policy.alpha));
  }
  if (policy.rule == UpdateRule::post_step) return;
  const bool fresh = policy.rule == UpdateRule::fresh_center;
  const double pull = fresh ? policy.alpha * (1 - policy.beta) : policy.alpha;
  verdict.effective_learning_rate_share = policy.beta / (pull + policy.beta);
  if (!fresh && verdict.effective_learning_rate_share < 0.5) {
    verdict.warnings.push_back(fmt::format(
        "sync.alpha = {:g}, sync.beta = {:g}: the effective learning rate is {:.3g} of "
        "optimizer.lr; lower sync.alpha or raise optimizer.lr",
        policy.alpha,
        policy.beta,
        verdict.effective_learning_rate_share));
  }
  if (policy.alpha == 0 && policy.workers > 1) {
    verdict.warnings.emplace_back(
        "sync.alpha = 0: the workers are never drawn to the center, each trains alone");
  }
}

}  // namespace

PhaseRule phase_of(const PolicyRequest& request) {
  if (request.strategy == Strategy::interleaved) return request.phase.value_or(PhaseRule::residue);
  if (request.strategy == Strategy::diloco) return request.phase.value_or(PhaseRule::together);
  return PhaseRule::together;
}

Result<PolicyVerdict> resolve(const PolicyRequest& request) {
  if (auto problem = find_range_problem(request)) return refuse(*std::move(problem));
  if (auto problem = find_preset_conflict(request)) return refuse(*std::move(problem));
  PolicyVerdict verdict;
  verdict.policy = fill_in(request);
  if (auto problem = find_sum_problem(verdict.policy)) return refuse(*std::move(problem));
  const Result<void> stable = check_stability(request, verdict);
  if (stable.has_error()) return stable.error();
  warn_about_ignored(request, verdict.warnings);
  measure_pull(verdict);
  return verdict;
}

}  // namespace stagger
