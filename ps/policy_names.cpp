#include <initializer_list>

#include "observability/check.hpp"
#include "ps/policy.hpp"

// The names of strategies, rules, phases and admissions, both ways.
namespace stagger {
namespace {

template <class Value>
std::optional<Value> parse_name(std::string_view text, std::initializer_list<Value> values) {
  for (const Value value : values) {
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::interleaved:
      return "interleaved";
    case Strategy::easgd:
      return "easgd";
    case Strategy::local_sgd:
      return "local_sgd";
    case Strategy::bsp:
      return "bsp";
    case Strategy::diloco:
      return "diloco";
  }
  CHECK(false, "no such strategy", static_cast<int>(strategy));
  return {};
}

std::string_view to_string(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::old_center:
      return "old_center";
    case UpdateRule::fresh_center:
      return "fresh_center";
    case UpdateRule::post_step:
      return "post_step";
  }
  CHECK(false, "no such update rule", static_cast<int>(rule));
  return {};
}

std::string_view to_string(Admission admission) {
  switch (admission) {
    case Admission::none:
      return "none";
    case Admission::slots:
      return "slots";
    case Admission::grants:
      return "grants";
    case Admission::slots_grants:
      return "slots+grants";
  }
  CHECK(false, "no such admission", static_cast<int>(admission));
  return {};
}

std::string_view to_string(PhaseRule phase) {
  switch (phase) {
    case PhaseRule::residue:
      return "residue";
    case PhaseRule::together:
      return "together";
    case PhaseRule::contiguous:
      return "contiguous";
    case PhaseRule::level:
      return "level";
  }
  CHECK(false, "no such phase rule", static_cast<int>(phase));
  return {};
}

std::optional<Strategy> parse_strategy(std::string_view text) {
  return parse_name(
      text,
      {Strategy::interleaved,
       Strategy::easgd,
       Strategy::local_sgd,
       Strategy::bsp,
       Strategy::diloco});
}

std::optional<UpdateRule> parse_update_rule(std::string_view text) {
  return parse_name(
      text, {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step});
}

std::optional<Admission> parse_admission(std::string_view text) {
  return parse_name(
      text, {Admission::none, Admission::slots, Admission::grants, Admission::slots_grants});
}

std::optional<PhaseRule> parse_phase_rule(std::string_view text) {
  return parse_name(
      text, {PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level});
}

}  // namespace stagger
