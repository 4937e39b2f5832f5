#include "net/http.hpp"

#include <nlohmann/json.hpp>

namespace stagger {

namespace {

/// Titles for the statuses that the engine gives.
const char* title_of(unsigned status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return status < 500 ? "Client Error" : "Server Error";
  }
}

}  // namespace

HttpResponse problem(unsigned status, const std::string& detail) {
  const nlohmann::ordered_json body{
      {"type", "about:blank"},
      {"title", title_of(status)},
      {"status", status},
      {"detail", detail},
  };
  return HttpResponse{
      .status = status,
      .content_type = "application/problem+json",
      // The detail may quote what a client sent, which need not be UTF-8.
      .body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
      .headers = {},
  };
}

}  // namespace stagger
