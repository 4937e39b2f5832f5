#pragma once

#include <map>

#include "net/storage.hpp"

namespace stagger {

/// Files of one simulated node, in memory. They survive a crash of the node.
class SimStorage final : public Storage {
 public:
  Result<void> write_atomic(const std::string& path, std::span<const std::byte> bytes) override;
  Result<std::vector<std::byte>> read(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  Result<std::vector<std::string>> list(const std::string& directory) const override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;

  /// A full disk: writes fail, what exists stays.
  void set_full(bool full) { full_ = full; }

 private:
  std::map<std::string, std::vector<std::byte>> files_;
  bool full_ = false;
};

}  // namespace stagger
