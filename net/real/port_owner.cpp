#include "net/real/port_owner.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace stagger {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view listening = "0A";

/// Inode of the socket in a line of /proc/net/tcp when it listens on `port`, else empty.
std::string listening_inode(const std::string& line, std::uint16_t port) {
  std::istringstream words(line);
  std::string number;
  std::string local;
  std::string remote;
  std::string state;
  std::string skipped;
  std::string inode;
  words >> number >> local >> remote >> state;
  for (int i = 0; i < 5; ++i)
    words >> skipped;
  words >> inode;
  const std::size_t colon = local.rfind(':');
  if (colon == std::string::npos || state != listening) return {};
  unsigned value = 0;
  std::from_chars(local.data() + colon + 1, local.data() + local.size(), value, 16);
  return value == port ? inode : std::string();
}

std::set<std::string> listening_sockets(std::uint16_t port) {
  std::set<std::string> links;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      const std::string inode = listening_inode(line, port);
      if (!inode.empty()) links.insert("socket:[" + inode + "]");
    }
  }
  return links;
}

bool holds(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  fs::directory_iterator entry(process / "fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;
    const fs::path target = fs::read_symlink(entry->path(), unreadable);
    if (!unreadable && sockets.contains(target.string())) return true;
  }
  return false;
}

std::string describe_process(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return "process " + process.filename().string() + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

std::string describe_port_owner(std::uint16_t port) {
  const std::set<std::string> sockets = listening_sockets(port);
  if (sockets.empty()) return {};
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_process = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_process && holds(entry->path(), sockets)) return describe_process(entry->path());
  }
  return {};
}

}  // namespace stagger
