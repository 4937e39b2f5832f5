#include "net/real/disk_storage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/real/descriptor.hpp"

namespace stagger {

namespace {

constexpr std::string_view temporary_mark = ".tmp-";
constexpr mode_t file_mode = 0644;

Error system_failure(const std::string& path, std::string_view action, int number) {
  return Error{
      .code = number == ENOENT ? Errc::not_found : Errc::storage,
      .detail = path + ": " + std::string(action) + ": " + std::generic_category().message(number)};
}

Error write_failure(const std::string& path, std::string_view action, int number) {
  Error error = system_failure(path, action, number);
  error.code = Errc::storage;
  return error;
}

std::string parent_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

/// A file beside the target that vanishes unless it is kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : path_(target + std::string(temporary_mark) + "XXXXXX"),
        file_(mkostemp(path_.data(), O_CLOEXEC)) {}

  ~TemporaryFile() {
    if (!kept_ && made_) unlink(path_.c_str());
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool made() const { return made_; }

  int descriptor() const { return file_.get(); }

  int close() { return file_.reset(); }

  const std::string& path() const { return path_; }

  void keep() { kept_ = true; }

 private:
  std::string path_;
  Descriptor file_;
  bool made_ = file_.valid();
  bool kept_ = false;
};

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

Result<void> sync_directory(const std::string& directory) {
  const Descriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return write_failure(directory, "cannot open", errno);
  if (fsync(opened.get()) != 0) return write_failure(directory, "cannot sync", errno);
  return {};
}

}  // namespace

Result<void> DiskStorage::write_atomic(const std::string& path, std::span<const std::byte> bytes) {
  const std::string parent = parent_of(path);
  std::error_code made;
  std::filesystem::create_directories(parent, made);
  if (made) return write_failure(parent, "cannot create the directory", made.value());

  TemporaryFile file(path);
  if (!file.made()) return write_failure(path, "cannot create", errno);
  if (!write_all(file.descriptor(), bytes)) return write_failure(path, "cannot write", errno);
  if (fchmod(file.descriptor(), file_mode) != 0) {
    return write_failure(path, "cannot set the mode", errno);
  }
  if (fsync(file.descriptor()) != 0) return write_failure(path, "cannot sync", errno);
  if (file.close() != 0) return write_failure(path, "cannot close", errno);
  if (::rename(file.path().c_str(), path.c_str()) != 0) {
    return write_failure(path, "cannot replace", errno);
  }
  file.keep();
  return sync_directory(parent);
}

Result<std::vector<std::byte>> DiskStorage::read(const std::string& path) const {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return system_failure(path, "cannot open", errno);
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return system_failure(path, "cannot examine", errno);

  // The size is a hint: what /proc and pipes hold shows only by reading.
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)) + 1);
  std::size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(path, "cannot read", errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

bool DiskStorage::exists(const std::string& path) const {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<std::vector<std::string>> DiskStorage::list(const std::string& directory) const {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.find(temporary_mark) == std::string::npos) names.push_back(std::move(name));
  }
  if (error) return system_failure(directory, "cannot list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> DiskStorage::remove(const std::string& path) {
  if (unlink(path.c_str()) != 0) return system_failure(path, "cannot remove", errno);
  return {};
}

Result<void> DiskStorage::rename(const std::string& from, const std::string& to) {
  if (exists(to)) return write_failure(to, "cannot move " + from + " there", EEXIST);
  if (::rename(from.c_str(), to.c_str()) != 0) return system_failure(from, "cannot move", errno);
  return {};
}

}  // namespace stagger
