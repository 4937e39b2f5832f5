#pragma once

#include "net/clock.hpp"
#include "net/http.hpp"
#include "observability/metrics.hpp"
#include "ps/server.hpp"

namespace stagger {

/// The HTTP API: GET|PUT /v1/period, GET /v1/status, /healthz, /readyz, /metrics.
///
/// For:     people and scripts that watch or steer a run; served by the process of the coordinator.
/// Owner:   the command; server and registry outlive it.
/// Thread:  the loop.
/// Failure: errors are answers (problem+json); a rejected value changes nothing.
class Control final : public HttpHandler {
 public:
  Control(Server& server, const Registry& registry, const Clock& clock)
      : server_(server), registry_(registry), clock_(clock) {}

  Task<HttpResponse> handle(HttpRequest request) override;

 private:
  Task<HttpResponse> put_period(HttpRequest request);

  Server& server_;
  const Registry& registry_;
  const Clock& clock_;
};

}  // namespace stagger
