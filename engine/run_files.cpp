#include "engine/run_files.hpp"

#include <fmt/format.h>

#include "engine/job.hpp"

namespace stagger {

void RunFiles::archive_earlier(const std::string& mark) {
  if (!storage_.exists(path(mark))) return;
  std::uint64_t number = 1;
  while (storage_.exists(directory_ + "." + std::to_string(number)))
    ++number;
  const auto moved = storage_.rename(directory_, directory_ + "." + std::to_string(number));
  if (!moved) throw StorageError(describe(moved.error()));
}

std::string RunFiles::last_line(const std::string& name) const {
  const auto bytes = storage_.read(path(name));
  if (!bytes) return describe(bytes.error());
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return fmt::format("{} ({})", text.substr(text.rfind('\n') + 1), path(name));
}

void RunFiles::write(const std::string& name, const std::string& text) {
  write_bytes(name, std::as_bytes(std::span(text)));
}

void RunFiles::write_bytes(const std::string& name, std::span<const std::byte> bytes) {
  const auto written = storage_.write_atomic(path(name), bytes);
  if (!written) throw StorageError(describe(written.error()));
}

}  // namespace stagger
