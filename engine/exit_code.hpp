#pragma once

namespace stagger {

/// What the program's exit status means. Documented in README.md; a test holds the two against each
/// other.
enum class ExitCode : int {
  success = 0,
  failure = 1,          ///< an error without a code of its own
  usage = 2,            ///< command line or config
  data = 3,             ///< a data file or checkpoint that is missing or wrong
  ps_lost = 4,          ///< the PS was not found, or was lost during training
  refused = 5,          ///< the PS refused the worker: rank, model, settings or job
  address_in_use = 6,   ///< cannot listen
  members_missing = 7,  ///< not all workers joined within timeouts.join_s
  workers_lost = 8,     ///< every worker was lost; the center was saved
  storage = 9,          ///< results could not be written
  interrupted = 130,    ///< a second SIGINT or SIGTERM
};

}  // namespace stagger
