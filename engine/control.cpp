#include "engine/control.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/report.hpp"

namespace stagger {

namespace {

struct Route {
  std::string_view path;
  std::string_view methods;
};

constexpr std::array<Route, 5> routes{
    {{"/healthz", "GET, HEAD"},
     {"/readyz", "GET, HEAD"},
     {"/metrics", "GET, HEAD"},
     {"/v1/status", "GET, HEAD"},
     {"/v1/period", "GET, HEAD, PUT"}}};

/// The period in {"period": 4}, or what is wrong.
Result<std::uint32_t> parse_period(const std::string& body) {
  const auto wrong = [](const std::string& what) -> Error {
    return {.code = Errc::bad_message, .detail = what + R"(; expected {"period": N} with N >= 1)"};
  };
  const auto value = nlohmann::json::parse(body, nullptr, false);
  if (value.is_discarded()) return wrong("the body is not JSON");
  if (!value.is_object()) return wrong("the body is not an object");
  for (const auto& [key, unused] : value.items()) {
    if (key != "period") return wrong("unknown key \"" + key + "\"");
  }
  if (!value.contains("period")) return wrong("\"period\" is missing");
  const auto& period = value["period"];
  if (!period.is_number_unsigned()) return wrong("\"period\" is not a positive whole number");
  const auto number = period.get<std::uint64_t>();
  if (number < 1 || number > std::numeric_limits<std::uint32_t>::max()) {
    return wrong(fmt::format("\"period\" is {}", number));
  }
  return static_cast<std::uint32_t>(number);
}

HttpResponse text(std::string body, std::string_view content_type = "text/plain; charset=utf-8") {
  return {
      .status = 200,
      .content_type = std::string(content_type),
      .body = std::move(body),
      .headers = {}};
}

HttpResponse json(std::string body) {
  return {
      .status = 200, .content_type = "application/json", .body = std::move(body), .headers = {}};
}

/// 404 or 405 for what no route takes; nothing for a request that one does.
std::optional<HttpResponse> reject(const HttpRequest& request) {
  for (const Route& route : routes) {
    if (request.path != route.path) continue;
    const auto listed = fmt::format(", {},", route.methods);
    if (listed.find(fmt::format(", {},", request.method)) != std::string::npos) return std::nullopt;
    auto response = problem(405, fmt::format("{} takes {}", route.path, route.methods));
    response.headers.emplace_back("Allow", route.methods);
    return response;
  }
  std::string known;
  for (const Route& route : routes)
    known += fmt::format(" {}", route.path);
  return problem(404, "no such resource; there are" + known);
}

}  // namespace

Task<HttpResponse> Control::handle(HttpRequest request) {
  if (auto rejected = reject(request)) co_return std::move(*rejected);
  if (request.method == "PUT") co_return co_await put_period(std::move(request));
  if (request.path == "/healthz") co_return text("ok\n");
  if (request.path == "/metrics") co_return text(registry_.text(), Registry::content_type);
  if (request.path == "/v1/status") co_return json(status_json(server_, clock_.now()));
  if (!server_.started()) co_return problem(503, "the run has not started: workers are missing");
  if (request.path == "/readyz") co_return text("training\n");
  co_return json(period_json(server_));
}

Task<HttpResponse> Control::put_period(HttpRequest request) {
  const auto period = parse_period(request.body);
  if (!period) co_return problem(400, period.error().detail);
  const bool followed = server_.period_follows();
  const auto iteration = co_await server_.change_period(*period, request.peer);
  if (!iteration) co_return problem(409, iteration.error().detail);
  nlohmann::json body{{"period", *period}, {"iteration", iteration->value()}};
  if (followed) body["auto"] = "off for the rest of the run";
  co_return json(body.dump() + "\n");
}

}  // namespace stagger
