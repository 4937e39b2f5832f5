#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/system/result.hpp>

/// Outcomes that peers, networks and disks can cause: values, not exceptions.
namespace stagger {

enum class Errc : std::uint8_t {
  disconnected,    ///< the peer closed, or the connection broke
  deadline,        ///< the peer stayed silent past the limit; the connection is closed
  unreachable,     ///< no connection could be made
  address_in_use,  ///< somebody listens there already
  bad_address,     ///< host or port cannot be resolved
  bad_frame,       ///< bytes that are no frame, or a frame over the limits
  bad_message,     ///< a frame that is no message of ours
  refused,         ///< the peer said no; detail is its reason
  closed,          ///< our own side was closed
  storage,         ///< the disk said no; detail holds path and errno text
  not_found,       ///< no such file
};

std::string_view to_string(Errc code);

/// A code to branch on and a sentence for people, which names address, rank, group, file as they
/// apply.
struct Error {  // NOLINT(cppcoreguidelines-pro-type-member-init): made with its code only
  Errc code = Errc::closed;
  std::string detail;
};

/// "disconnected: 127.0.0.1:7000 closed the connection".
std::string describe(const Error& error);

template <class T>
using Result = boost::system::result<T, Error>;

/// Thrown where an Error has nobody left to branch on it (Result::value(), a scope's owner).
[[noreturn]] void throw_exception_from_error(
    const Error& error, const boost::source_location& where);

}  // namespace stagger
