#include "net/sim/storage.hpp"

#include <set>

namespace stagger {

namespace {

Error not_found(const std::string& path) {
  return Error{.code = Errc::not_found, .detail = path + ": No such file or directory"};
}

std::string as_prefix(const std::string& directory) {
  return directory.empty() || directory.ends_with('/') ? directory : directory + "/";
}

}  // namespace

Result<void> SimStorage::write_atomic(const std::string& path, std::span<const std::byte> bytes) {
  if (full_) return Error{.code = Errc::storage, .detail = path + ": No space left on device"};
  files_[path].assign(bytes.begin(), bytes.end());
  return {};
}

Result<std::vector<std::byte>> SimStorage::read(const std::string& path) const {
  const auto file = files_.find(path);
  if (file == files_.end()) return not_found(path);
  return file->second;
}

bool SimStorage::exists(const std::string& path) const {
  return files_.contains(path) || list(path).has_value();
}

Result<std::vector<std::string>> SimStorage::list(const std::string& directory) const {
  const std::string prefix = as_prefix(directory);
  std::set<std::string> names;
  for (auto file = files_.lower_bound(prefix); file != files_.end(); ++file) {
    if (!file->first.starts_with(prefix)) break;
    const std::string rest = file->first.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  }
  if (names.empty()) return not_found(directory);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<void> SimStorage::remove(const std::string& path) {
  if (files_.erase(path) == 0) return not_found(path);
  return {};
}

Result<void> SimStorage::rename(const std::string& from, const std::string& to) {
  if (exists(to)) return Error{.code = Errc::storage, .detail = to + ": File exists"};
  if (!exists(from)) return not_found(from);
  std::map<std::string, std::vector<std::byte>> moved;
  for (auto file = files_.begin(); file != files_.end();) {
    const bool inside = file->first == from || file->first.starts_with(as_prefix(from));
    if (!inside) {
      ++file;
      continue;
    }
    moved.emplace(to + file->first.substr(from.size()), std::move(file->second));
    file = files_.erase(file);
  }
  files_.merge(moved);
  return {};
}

}  // namespace stagger
