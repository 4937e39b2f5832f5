#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "net/error.hpp"

namespace stagger {

/// Files, at the granularity the engine needs. Paths are plain strings; parents are created on
/// write.
///
/// For:     reports, checkpoints, plans, data sets.
/// Owner:   the Host's creator.
/// Thread:  any (the real one is stateless); calls block, so large ones go through Compute.
/// Failure: storage or not_found, with path and the system's reason. A failed write leaves the old
/// file whole.
class Storage {
 public:
  /// Writes beside the target, syncs, renames over it: readers see the old file or the new one,
  /// never a part.
  virtual Result<void> write_atomic(const std::string& path, std::span<const std::byte> bytes) = 0;

  virtual Result<std::vector<std::byte>> read(const std::string& path) const = 0;
  virtual bool exists(const std::string& path) const = 0;

  /// Names (not paths) in a directory, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& directory) const = 0;
  virtual Result<void> remove(const std::string& path) = 0;

  /// Moves a file or a directory with all that is in it; the target must not exist.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;

 protected:
  ~Storage() = default;
};

}  // namespace stagger
