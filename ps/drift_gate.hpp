#pragma once

namespace stagger {

/// Whether what was measured has moved away for good from what a plan was made for. Pure.
///
/// It has when one of the two is off by more than `share`, up or down, in `evaluations` evaluations
/// in a row. Noise within 9 % of a constant opens it once at most: 1.09/0.91 < 1.2.
class DriftGate {
 public:
  struct Options {
    double share = 0.2;
    unsigned evaluations = 3;
  };

  explicit DriftGate(const Options& options) : options_(options) {}

  DriftGate() : DriftGate(Options()) {}

  /// The measured over the planned. True: it is time to plan anew, and the count begins again.
  bool evaluated(double link_ratio, double compute_ratio);

 private:
  bool off(double ratio) const;

  Options options_;
  unsigned in_a_row_ = 0;
};

}  // namespace stagger
