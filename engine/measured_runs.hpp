#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/commands.hpp"
#include "engine/comparison.hpp"
#include "engine/run_files.hpp"
#include "net/error.hpp"
#include "net/real/process.hpp"
#include "net/real/real_host.hpp"
#include "net/task.hpp"
#include "ps/grouping.hpp"

/// The rows of `stagger compare`, one run each.
namespace stagger {

/// The config of a combination, or why there is none.
Result<Config> config_of(const CommonOptions& options, const Combination& combination);

/// What the plan says of an iteration, in microseconds; nothing while the link is not known.
std::optional<double> predicted_iteration_us(
    const Config& config, const std::vector<LayerProfile>& layers);

/// Runs over loopback, as `stagger run` makes them, one after another.
///
/// For:     `stagger compare --measured`.
/// Owner:   the command; the host outlives it. Thread: the loop.
/// Cancel:  the run under way dies with its owner.
/// Failure: a run that ends badly is a row that says so; StorageError where nothing can be written.
class MeasuredRuns {
 public:
  struct Options {
    std::string program;  ///< this executable
    CommonOptions common;
    std::vector<LayerProfile> layers;  ///< for predictions; empty where the link is not known
  };

  /// `files`: where the table, and each run with its log, are kept.
  MeasuredRuns(RealHost& real, Options options, RunFiles files);

  Task<void> run(std::span<const Combination> combinations);

  /// Ends the run that is under way, and begins no other.
  void stop();

  const std::vector<ComparedRow>& rows() const { return rows_; }

  /// A run that should have ended well did not.
  bool failed() const { return failed_; }

 private:
  Task<ComparedRow> measure(Combination combination);
  std::unique_ptr<Process> start(const Combination& combination) const;
  void read_report(ComparedRow& row);

  RealHost& real_;
  Options options_;
  RunFiles files_;
  std::vector<ComparedRow> rows_;
  std::unique_ptr<Process> process_;  ///< under way
  bool stopping_ = false;
  bool failed_ = false;
};

}  // namespace stagger
