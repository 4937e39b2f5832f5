#include "engine/run_files.hpp"

#include "engine/job.hpp"

namespace stagger {

void RunFiles::archive_earlier() {
  if (!storage_.exists(path("endpoints.json"))) return;
  std::uint64_t number = 1;
  while (storage_.exists(directory_ + "." + std::to_string(number)))
    ++number;
  const auto moved = storage_.rename(directory_, directory_ + "." + std::to_string(number));
  if (!moved) throw StorageError(describe(moved.error()));
}

void RunFiles::write(const std::string& name, const std::string& text) {
  write_bytes(name, std::as_bytes(std::span(text)));
}

void RunFiles::write_bytes(const std::string& name, std::span<const std::byte> bytes) {
  const auto written = storage_.write_atomic(path(name), bytes);
  if (!written) throw StorageError(describe(written.error()));
}

}  // namespace stagger
