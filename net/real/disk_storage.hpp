#pragma once

#include "net/storage.hpp"

namespace stagger {

/// Files on disk.
///
/// write_atomic writes `path.tmp-XXXXXX`, syncs it, renames it over `path` and syncs the directory,
/// so that a power cut leaves the old file or the new one. Such leftovers of a killed process are
/// not listed.
///
/// Owner: RealHost. Thread: any. Failure: see Storage.
class DiskStorage final : public Storage {
 public:
  Result<void> write_atomic(const std::string& path, std::span<const std::byte> bytes) override;
  Result<std::vector<std::byte>> read(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& directory) const override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
};

}  // namespace stagger
