#include "ps/link_probe.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {
namespace {

constexpr std::uint64_t growth = 4;
constexpr std::uint64_t bytes_multiple = 8;

std::uint64_t first_size(std::uint64_t bytes_max) {
  constexpr std::uint64_t steps = 256;
  return std::max(bytes_max / steps / bytes_multiple, std::uint64_t{1}) * bytes_multiple;
}

}  // namespace

LinkProbe::LinkProbe(const Options& options)
    : options_(options), bytes_(first_size(options.bytes_max)) {
  CHECK_LE(bytes_multiple, options.bytes_max);
  CHECK_LE(1U, options.repeats);
}

std::optional<std::uint64_t> LinkProbe::next() const {
  if (answers_ == 0) return bytes_;
  if (slowest_ > options_.size_time_max) return std::nullopt;
  const bool repeats = spent_ + slowest_ <= options_.time_max;
  if (repeats && answers_ < options_.repeats) return bytes_;
  const bool grows = sizes_ == 1 || spent_ + growth * slowest_ <= options_.time_max;
  if (!grows || bytes_ * growth > options_.bytes_max) return std::nullopt;
  return bytes_ * growth;
}

void LinkProbe::answered(Duration time) {
  const auto asked = next();
  CHECK(asked.has_value(), "an answer to no question");
  if (*asked != bytes_) {
    bytes_ = *asked;
    ++sizes_;
    answers_ = 0;
    slowest_ = Duration{0};
  }
  fit_.add(bytes_, time);
  ++answers_;
  slowest_ = std::max(slowest_, time);
  spent_ += time;
}

std::optional<LinkCost> LinkProbe::cost() const {
  auto cost = fit_.cost();
  if (!cost || !(cost->seconds_per_byte > 0)) return std::nullopt;
  cost->start /= 2;
  return cost;
}

}  // namespace stagger
