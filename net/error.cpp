#include "net/error.hpp"

#include <stdexcept>

#include "observability/check.hpp"

namespace stagger {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::disconnected:
      return "disconnected";
    case Errc::deadline:
      return "deadline";
    case Errc::unreachable:
      return "unreachable";
    case Errc::address_in_use:
      return "address_in_use";
    case Errc::bad_address:
      return "bad_address";
    case Errc::bad_frame:
      return "bad_frame";
    case Errc::bad_message:
      return "bad_message";
    case Errc::refused:
      return "refused";
    case Errc::closed:
      return "closed";
    case Errc::storage:
      return "storage";
    case Errc::not_found:
      return "not_found";
  }
  CHECK(false, "no such error code");
  return {};
}

std::string describe(const Error& error) {
  std::string text(to_string(error.code));
  if (!error.detail.empty()) text.append(": ").append(error.detail);
  return text;
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  static_cast<void>(where);  // the sentence is for users; the place says nothing to them
  throw std::runtime_error(describe(error));
}

}  // namespace stagger
