#pragma once

#include <cstdint>
#include <optional>

#include "ps/link_fit.hpp"

namespace stagger {

/// Which payloads one worker is asked for, and what they say of the link. Pure.
///
/// Sizes grow by four from bytes_max/256 to bytes_max, each several times. A slow link is measured
/// by small sizes alone: none larger is asked for once one took longer than `size_time_max`, nor
/// where it would take all together beyond `time_max`; two sizes tell the start from the rate, so
/// the second is asked for all the same.
///
/// A time runs from the question to the answer's last byte, on one clock. The question travels like
/// an empty push, so half of what does not grow with the bytes is the start of a push.
class LinkProbe {
 public:
  struct Options {
    std::uint64_t bytes_max = std::uint64_t{1} << 20;  ///< a multiple of 64, at least 4096
    unsigned repeats = 3;
    Duration size_time_max{50ms};
    Duration time_max{250ms};
  };

  explicit LinkProbe(const Options& options);

  /// The payload to ask for next, a multiple of 8 bytes; none: it is enough.
  std::optional<std::uint64_t> next() const;

  /// The payload of next() took so long.
  void answered(Duration time);

  /// None before the first answer, and where no time can be right.
  std::optional<LinkCost> cost() const;

 private:
  Options options_;
  LinkFit fit_;
  std::uint64_t bytes_;
  unsigned sizes_ = 1;    ///< so far
  unsigned answers_ = 0;  ///< to this size
  Duration slowest_{0};   ///< of this size
  Duration spent_{0};
};

}  // namespace stagger
