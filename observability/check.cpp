#include "observability/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace stagger {

void check_failed(
    const char* file, int line, std::string_view condition, const std::string& detail) {
  std::fprintf(
      stderr,
      "%s:%d: CHECK failed: %.*s:%s\n",
      file,
      line,
      static_cast<int>(condition.size()),
      condition.data(),
      detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace stagger
