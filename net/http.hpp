#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/task.hpp"

/// HTTP as values, so that routes are written and tested without a socket. net/real/http_server
/// carries them.
namespace stagger {

struct HttpRequest {
  std::string method;  ///< "GET", "PUT", …
  std::string path;    ///< without the query: "/v1/period"
  std::string query;   ///< after '?', undecoded
  std::string body;
  std::string peer;           ///< address of who asks
  std::string authorization;  ///< that header's value: "Bearer …"; empty when absent
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>>
      headers;  ///< beyond the usual: {"Allow", "GET, PUT"}
};

/// RFC 9457: {"type":"about:blank","title":…,"status":…,"detail":…} as application/problem+json.
HttpResponse problem(unsigned status, const std::string& detail);

/// Answers requests; several may be under way at once. A HEAD arrives here as a GET; its body is
/// dropped on the way out.
class HttpHandler {
 public:
  /// Must not throw for anything a client can send.
  virtual Task<HttpResponse> handle(HttpRequest request) = 0;

 protected:
  ~HttpHandler() = default;
};

}  // namespace stagger
