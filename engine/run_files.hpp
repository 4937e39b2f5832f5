#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "net/storage.hpp"

namespace stagger {

/// The files of one run, below its directory. A failed write throws StorageError naming the path
/// and the reason.
class RunFiles {
 public:
  RunFiles(Storage& storage, std::string directory)
      : storage_(storage), directory_(std::move(directory)) {}

  /// Moves what an earlier run left in the directory to `<directory>.1`, `.2`, …: nothing is
  /// written over. `mark`: the file that tells such a directory.
  void archive_earlier(const std::string& mark = "endpoints.json");

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  /// The last line of a log that says something, and the log's path, for people.
  std::string last_line(const std::string& name) const;

  void write(const std::string& name, const std::string& text);
  void write_bytes(const std::string& name, std::span<const std::byte> bytes);

 private:
  Storage& storage_;
  std::string directory_;
};

}  // namespace stagger
