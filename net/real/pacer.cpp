#include "net/real/pacer.hpp"

#include <algorithm>

namespace stagger {

TimePoint Pacer::end_of(TimePoint began, Duration nominal, TimePoint now) {
  if (began - last_ > gap_max) debt_ = Duration{0};
  end_ = began + nominal - debt_;
  rests_ = end_ > now;
  // Work that took its whole time by itself makes up for nothing, and owes nothing.
  if (!rests_) debt_ -= std::clamp(nominal - (now - began), Duration{0}, debt_);
  return end_;
}

void Pacer::ended(TimePoint now) {
  if (rests_) debt_ = std::clamp(now - end_, Duration{0}, debt_max);
  last_ = now;
}

}  // namespace stagger
