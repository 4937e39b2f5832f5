#include "net/storage.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "net/real/disk_storage.hpp"
#include "net/sim/storage.hpp"

namespace stagger {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A directory that is gone after the test.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stagger-storage-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }

  ~Scratch() { fs::remove_all(path_); }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Both implementations keep the same promises.
void check_promises(Storage& storage, const std::string& root) {
  const std::string file = root + "/a/b/report.json";
  EXPECT_FALSE(storage.exists(file));
  EXPECT_EQ(storage.read(file).error().code, Errc::not_found);
  EXPECT_EQ(storage.list(root + "/a").error().code, Errc::not_found);

  ASSERT_TRUE(storage.write_atomic(file, bytes_of("first")));
  ASSERT_TRUE(storage.write_atomic(file, bytes_of("second version")));
  EXPECT_EQ(storage.read(file).value(), bytes_of("second version"));
  ASSERT_TRUE(storage.write_atomic(root + "/a/empty", {}));
  EXPECT_TRUE(storage.read(root + "/a/empty").value().empty());
  EXPECT_EQ(storage.list(root + "/a").value(), (std::vector<std::string>{"b", "empty"}));
  EXPECT_TRUE(storage.exists(root + "/a/b"));

  ASSERT_TRUE(storage.rename(root + "/a/b", root + "/a/c"));
  EXPECT_FALSE(storage.exists(file));
  EXPECT_EQ(storage.read(root + "/a/c/report.json").value(), bytes_of("second version"));
  EXPECT_FALSE(storage.rename(root + "/a/c", root + "/a/empty"));
  EXPECT_FALSE(storage.rename(root + "/a/missing", root + "/a/d"));

  ASSERT_TRUE(storage.remove(root + "/a/empty"));
  EXPECT_EQ(storage.remove(root + "/a/empty").error().code, Errc::not_found);
  EXPECT_EQ(storage.list(root + "/a").value(), std::vector<std::string>{"c"});
}

TEST(StorageOnDisk, keeps_its_promises) {
  const Scratch scratch;
  DiskStorage storage;
  check_promises(storage, scratch.path());
}

TEST(SimulatedStorage, keeps_its_promises) {
  SimStorage storage;
  check_promises(storage, "root");
}

TEST(SimulatedStorage, full_disk_leaves_the_old_file_whole) {
  SimStorage storage;
  ASSERT_TRUE(storage.write_atomic("file", bytes_of("old")));
  storage.set_full(true);
  const Result<void> written = storage.write_atomic("file", bytes_of("new"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::storage);
  EXPECT_EQ(storage.read("file").value(), bytes_of("old"));
}

TEST(StorageOnDisk, large_files_come_back_whole) {
  const Scratch scratch;
  DiskStorage storage;
  std::vector<std::byte> bytes(3 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 7 % 251);
  ASSERT_TRUE(storage.write_atomic(scratch / "large", bytes));
  EXPECT_TRUE(storage.read(scratch / "large").value() == bytes);
}

TEST(StorageOnDisk, files_are_readable_by_others) {
  const Scratch scratch;
  DiskStorage storage;
  ASSERT_TRUE(storage.write_atomic(scratch / "file", bytes_of("x")));
  struct stat status{};
  ASSERT_EQ(stat((scratch / "file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST(StorageOnDisk, failed_write_leaves_no_trace_and_names_path_and_reason) {
  // A directory stands where the file should go: everything works but the last step, the
  // replacement.
  const Scratch scratch;
  DiskStorage storage;
  ASSERT_TRUE(storage.write_atomic(scratch / "target/inside", bytes_of("old")));
  const Result<void> written = storage.write_atomic(scratch / "target", bytes_of("new"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::storage);
  EXPECT_NE(written.error().detail.find(scratch / "target"), std::string::npos);
  EXPECT_NE(written.error().detail.find("Is a directory"), std::string::npos)
      << written.error().detail;
  EXPECT_EQ(storage.read(scratch / "target/inside").value(), bytes_of("old"));
  const auto entries = std::distance(fs::directory_iterator(scratch.path()), {});
  EXPECT_EQ(entries, 1);  // no temporary file is left, not even a hidden one
}

TEST(StorageOnDisk, full_disk_leaves_the_old_file_whole) {
  // Files of this process may not grow past some KiB for a while: the write fails in its middle, as
  // on a full disk.
  const Scratch scratch;
  const std::string file = scratch / "file";
  DiskStorage storage;
  ASSERT_TRUE(storage.write_atomic(file, bytes_of("old")));
  const std::string script =
      "ulimit -f 64; exec \"$0\" --gtest_also_run_disabled_tests "
      "--gtest_filter=StorageOnDisk.DISABLED_writes_a_megabyte_to_the_named_file";
  setenv("STAGGER_TEST_FILE", file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const std::string command = "sh -c '" + script + "' '" + self + "' > /dev/null 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(storage.read(file).value(), bytes_of("old"));
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 1);
}

/// The helper of the test above, in a process that may not write so much; passes when the write is
/// refused.
TEST(StorageOnDisk, DISABLED_writes_a_megabyte_to_the_named_file) {
  std::signal(SIGXFSZ, SIG_IGN);
  const char* const file = std::getenv("STAGGER_TEST_FILE");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_NE(file, nullptr);
  DiskStorage storage;
  const Result<void> written = storage.write_atomic(file, std::vector<std::byte>(1 << 20));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().detail.find("File too large"), std::string::npos)
      << written.error().detail;
}

TEST(StorageOnDisk, parent_that_is_a_file_is_named) {
  const Scratch scratch;
  DiskStorage storage;
  ASSERT_TRUE(storage.write_atomic(scratch / "file", bytes_of("x")));
  const Result<void> written = storage.write_atomic(scratch / "file/below", bytes_of("y"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::storage);
  EXPECT_NE(written.error().detail.find(scratch / "file"), std::string::npos);
}

TEST(StorageOnDisk, leftovers_of_a_killed_write_are_not_listed) {
  const Scratch scratch;
  DiskStorage storage;
  ASSERT_TRUE(storage.write_atomic(scratch / "file", bytes_of("x")));
  std::ofstream(scratch / "file.tmp-Ab3xYz") << "half";
  EXPECT_EQ(storage.list(scratch.path()).value(), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace stagger
