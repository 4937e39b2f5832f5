#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/control.hpp"
#include "engine/job.hpp"
#include "engine/progress.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "engine/run_files.hpp"
#include "engine/safetensors.hpp"
#include "engine/workload.hpp"
#include "net/real/http_server.hpp"

namespace stagger {

namespace {

/// The process of `stagger ps`: server, HTTP, progress, and what a run leaves on disk.
class PsProcess {
 public:
  PsProcess(Role& role, Config config, bool json)
      : role_(role),
        config_(std::move(config)),
        json_(json),
        files_(role.host().storage, run_directory(config_)),
        workload_(load_workload(role.host().storage, config_, DataNeed::train_and_test)),
        server_metrics_(registry_),
        worker_metrics_(registry_),
        server_(
            role.host(),
            server_options(config_, workload_->architecture(), workload_->last_iteration()),
            initial_center(workload_->architecture(), config_.job.seed),
            server_metrics_,
            worker_metrics_),
        control_(server_, registry_, role.host().clock) {}

  Task<void> run() {
    if (const auto verdict = resolve(server_.options().policy)) {
      for (const std::string& warning : verdict->warnings)
        role_.log().warning("policy", {{"warning", warning}});
    }
    open();
    if (http_) role_.scope().spawn("http", http_->serve());
    role_.scope().spawn("progress", show_progress(role_.host().clock, server_, progress_options()));
    std::exception_ptr failure;
    try {
      co_await server_.run();
    } catch (const ServerFailure&) {
      failure = std::current_exception();
    }
    if (http_) http_->stop();
    if (server_.started()) write_results();
    if (failure) std::rethrow_exception(failure);
  }

  /// SIGTERM: agree on a last iteration with the workers; after timeouts.stop without them.
  void stop() { role_.scope().spawn("stop", stop_within_limit()); }

 private:
  ProgressOptions progress_options() const {
    return {.quiet = json_, .loss = config_.backend.kind != BackendKind::replay};
  }

  void open() {
    const auto listening = server_.listen();
    if (!listening) {
      throw ServerFailure(ServerFailure::Kind::listen_failed, describe(listening.error()));
    }
    nlohmann::ordered_json endpoints{{"ps", to_string(*listening)}};
    if (config_.http.enabled) {
      HttpServerOptions options{.listen = config_.http.listen};
      options.connections_max = config_.http.connections_max;
      options.limits.body_bytes_max = config_.http.body_bytes_max;
      auto http = HttpServer::open(role_.host().executor, options, control_, role_.log());
      if (!http) throw ServerFailure(ServerFailure::Kind::listen_failed, describe(http.error()));
      http_ = std::move(*http);
      endpoints["http"] = to_string(http_->local());
    }
    files_.archive_earlier();
    files_.write("config.toml", to_toml(config_));
    files_.write("endpoints.json", endpoints.dump() + "\n");
    role_.log().info("listening", {{"endpoints", endpoints.dump()}});
    if (!json_) {
      fmt::print("PS at {}", to_string(*listening));
      if (http_) fmt::print(", http://{}/v1/status and /metrics", to_string(http_->local()));
      fmt::print("\n");
      std::fflush(stdout);
    }
  }

  Task<void> stop_within_limit() {
    role_.scope().spawn("force_stop", force_stop());
    const auto last = co_await server_.stop("signal");
    if (last) role_.log().info("stopping", {{"last_iteration", last->value()}});
  }

  Task<void> force_stop() {
    co_await role_.host().clock.sleep_until(role_.host().clock.now() + config_.timeouts.stop);
    role_.log().warning("stop_forced", {{"limit_s", to_seconds(config_.timeouts.stop)}});
    server_.abandon();
  }

  void write_results() {
    const Arena center = server_.center();
    RunFacts facts;
    facts.server = &server_;
    facts.parameters_sha256 = parameters_sha256(center);
    facts.evaluation = workload_->evaluate(center);
    if (const auto verdict = resolve(server_.options().policy)) {
      facts.effective_learning_rate_share = verdict->effective_learning_rate_share;
    }
    const std::string report = report_json(facts);
    files_.write_bytes(
        "model.safetensors",
        encode_safetensors(
            center,
            {{"job", config_.job.name},
             {"model", workload_->architecture().name()},
             {"iteration", std::to_string(server_.status().iteration.value())}}));
    files_.write("plan.json", plan_json(server_.plans().latest(), server_.options().layers));
    files_.write("report.json", report);
    if (json_) {
      fmt::print("{}", report);
    } else {
      fmt::print("\n{}results         {}/\n", report_text(report), run_directory(config_));
    }
    std::fflush(stdout);
  }

  Role& role_;
  Config config_;
  bool json_;
  RunFiles files_;
  std::unique_ptr<Workload> workload_;
  Registry registry_;
  ServerMetrics server_metrics_;
  WorkerMetrics worker_metrics_;
  Server server_;
  Control control_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

ExitCode run_ps(const CommonOptions& options) {
  const Config config = load_config(options.config_path, options.overrides);
  Role role("ps", config.job.seed, tcp_options(config));
  PsProcess process(role, config, options.json);
  role.run(process.run(), [&process] { process.stop(); });
  return ExitCode::success;
}

}  // namespace stagger
