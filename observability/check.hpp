#pragma once

#include <sstream>
#include <string>
#include <string_view>

/// Invariants that stay on in every build.
///
/// A failed CHECK is a bug of ours, never something a peer, a file or a user can cause: it logs the
/// condition, the place and the values, runs the failure hook, and aborts. What the outside can
/// cause is a Result (net/error.hpp).
///
///     CHECK(due, "group exchanged out of turn", group, iteration);
///     CHECK_EQ(head.size() % 8, 0U);
namespace stagger {

/// Prints the message and aborts. Called by the macros only.
[[noreturn]] void check_failed(
    const char* file, int line, std::string_view condition, const std::string& detail);

namespace detail {

inline std::string join_values() {
  return {};
}

template <class First, class... Rest>
std::string join_values(const First& first, const Rest&... rest) {
  std::ostringstream out;
  out << ' ' << first;
  ((out << ' ' << rest), ...);
  return out.str();
}

}  // namespace detail

}  // namespace stagger

#define CHECK(condition, ...)                                                           \
  do {                                                                                  \
    if (!(condition)) [[unlikely]] {                                                    \
      ::stagger::check_failed(                                                          \
          __FILE__, __LINE__, #condition, ::stagger::detail::join_values(__VA_ARGS__)); \
    }                                                                                   \
  } while (false)

#define STAGGER_CHECK_OP(op, left, right)                                \
  do {                                                                   \
    const auto& check_left = (left);                                     \
    const auto& check_right = (right);                                   \
    if (!(check_left op check_right)) [[unlikely]] {                     \
      ::stagger::check_failed(                                           \
          __FILE__,                                                      \
          __LINE__,                                                      \
          #left " " #op " " #right,                                      \
          ::stagger::detail::join_values(check_left, #op, check_right)); \
    }                                                                    \
  } while (false)

#define CHECK_EQ(left, right) STAGGER_CHECK_OP(==, left, right)
#define CHECK_NE(left, right) STAGGER_CHECK_OP(!=, left, right)
#define CHECK_LT(left, right) STAGGER_CHECK_OP(<, left, right)
#define CHECK_LE(left, right) STAGGER_CHECK_OP(<=, left, right)
