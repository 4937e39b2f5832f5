#include "ps/agreement.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {

std::uint64_t Agreement::begin(const std::vector<WorkerId>& workers) {
  CHECK(!under_way_, "two agreements at a time", number_);
  under_way_ = true;
  awaited_ = {workers.begin(), workers.end()};
  hold_max_ = Iteration(0);
  return ++number_;
}

void Agreement::promise(std::uint64_t agreement, WorkerId worker, Iteration hold) {
  if (!under_way_ || agreement != number_ || awaited_.erase(worker) == 0) return;
  hold_max_ = std::max(hold_max_, hold);
}

Iteration Agreement::finish() {
  CHECK(complete(), "finished before all have promised", number_);
  under_way_ = false;
  return hold_max_.next();
}

Iteration earliest_switch(Iteration agreed, Iteration last_switch, std::uint32_t period) {
  return std::max(agreed, Iteration(last_switch.value() + period));
}

}  // namespace stagger
