#pragma once

#include "net/time.hpp"

namespace stagger {

/// Every wait has a limit; these are the limits. In TOML: [timeouts], in seconds (join_s,
/// heartbeat_s, …).
struct Timeouts {
  Duration join{60s};      ///< all workers must have joined; a worker must have found the PS
  Duration heartbeat{1s};  ///< interval at which each side says that it lives
  Duration worker{5s};   ///< silence after which open rounds close without a worker; > 2*heartbeat
  Duration warning{2s};  ///< a wait longer than this says who is awaited; < worker
  Duration stop{10s};    ///< from the first SIGTERM to a forced end

  bool operator==(const Timeouts&) const = default;
};

}  // namespace stagger
