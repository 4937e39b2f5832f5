#pragma once

#include <sys/types.h>

#include "net/error.hpp"
#include "net/real/descriptor.hpp"
#include "net/real/process.hpp"

namespace stagger {

struct Spawned {
  pid_t id = 0;
  Descriptor output;  ///< reading end of the child's stdout and stderr, unless they go to a file
};

/// fork() and exec(), as Process describes. Blocks for the moment until the program runs or could
/// not be run.
Result<Spawned> spawn_process(const ProcessOptions& options);

}  // namespace stagger
