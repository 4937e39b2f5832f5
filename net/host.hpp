#pragma once

#include <cstdint>

#include "net/clock.hpp"
#include "net/compute.hpp"
#include "net/network.hpp"
#include "net/storage.hpp"
#include "net/task.hpp"
#include "observability/log.hpp"

namespace stagger {

/// The door to the world: everything a component may know of time, network, disk, processor and
/// chance.
///
/// Two sets exist: net/real/real_host.hpp and net/sim/world.hpp. Worker and Server cannot tell
/// which they run on.
struct Host {
  Executor executor;
  Clock& clock;
  Network& network;
  Storage& storage;
  Compute& compute;
  Log& log;
  std::uint64_t seed;
};

}  // namespace stagger
