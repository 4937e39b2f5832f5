#include "ps/drift_gate.hpp"

namespace stagger {

bool DriftGate::off(double ratio) const {
  const double bound = 1.0 + options_.share;
  return ratio > bound || ratio < 1.0 / bound;
}

bool DriftGate::evaluated(double link_ratio, double compute_ratio) {
  in_a_row_ = off(link_ratio) || off(compute_ratio) ? in_a_row_ + 1 : 0;
  if (in_a_row_ < options_.evaluations) return false;
  in_a_row_ = 0;
  return true;
}

}  // namespace stagger
