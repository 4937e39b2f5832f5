#include "engine/launcher.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/job.hpp"
#include "engine/role.hpp"
#include "engine/workload.hpp"

namespace stagger {

namespace {

/// Exit codes that say the job itself is wrong: no use to go on without the worker.
bool ends_job(int code) {
  return code == static_cast<int>(ExitCode::usage) || code == static_cast<int>(ExitCode::data) ||
         code == static_cast<int>(ExitCode::refused);
}

}  // namespace

Launcher::Launcher(RealHost& real, Options options)
    : host_(real.host()),
      real_(real),
      options_(std::move(options)),
      files_(host_.storage, run_directory(options_.config)),
      scope_(host_.executor, "launcher") {}

std::unique_ptr<Process> Launcher::start(std::vector<std::string> words, const std::string& name) {
  words.insert(words.begin(), options_.program);
  auto process = Process::start(
      real_.context(),
      {.argv = std::move(words),
       .environment = {},
       .output_path = files_.path(name + ".log"),
       .share_output = true});
  if (!process) throw std::runtime_error(describe(process.error()));
  return std::move(*process);
}

Task<void> Launcher::run() {
  files_.archive_earlier();
  files_.write("config.toml", to_toml(options_.config));
  std::vector<std::string> words{"ps", files_.path("config.toml")};
  if (options_.json) words.emplace_back("--json");
  ps_ = start(std::move(words), "ps");
  const std::string ps_address = co_await await_endpoint();
  if (!ps_address.empty()) {
    for (std::uint32_t rank = 0; rank < options_.config.cluster.workers; ++rank) {
      workers_.push_back(start(
          {"worker",
           files_.path("config.toml"),
           "--ps",
           ps_address,
           "--rank",
           std::to_string(rank)},
          fmt::format("worker-{}", rank)));
      scope_.spawn(fmt::format("worker {}", rank), watch_worker(rank));
    }
  }
  const int code = co_await ps_->wait();
  if (outcome_ == ExitCode::success) outcome_ = static_cast<ExitCode>(code);
  if (code != 0 && outcome_ == static_cast<ExitCode>(code)) {
    fmt::print(stderr, "stagger: the PS ended with {}: {}\n", code, files_.last_line("ps.log"));
  }
  co_await end_workers();
  co_await scope_.join();
}

/// Workers end when they have said farewell or miss the PS; one that hangs is killed.
Task<void> Launcher::end_workers() {
  const auto ended = [](const std::unique_ptr<Process>& worker) {
    return worker->ended();
  };
  const TimePoint limit = host_.clock.now() + options_.config.timeouts.stop;
  while (host_.clock.now() < limit && !std::ranges::all_of(workers_, ended)) {
    co_await host_.clock.sleep_until(host_.clock.now() + 20ms);
  }
  for (const auto& worker : workers_)
    worker->signal(SIGKILL);
}

/// Waits until the PS has written where it listens; empty when it ended before.
Task<std::string> Launcher::await_endpoint() {
  const TimePoint limit = host_.clock.now() + options_.config.timeouts.join;
  while (host_.clock.now() < limit && !ps_->ended()) {
    if (const auto bytes = host_.storage.read(files_.path("endpoints.json"))) {
      const auto* text = reinterpret_cast<const char*>(bytes->data());
      co_return nlohmann::json::parse(text, text + bytes->size()).at("ps").get<std::string>();
    }
    co_await host_.clock.sleep_until(host_.clock.now() + 20ms);
  }
  co_return std::string();
}

Task<void> Launcher::watch_worker(std::uint32_t rank) {
  const int code = co_await workers_[rank]->wait();
  if (code == 0) co_return;
  const std::string name = fmt::format("worker-{}", rank);
  fmt::print(
      stderr,
      "stagger: worker {} ended with {}: {}\n",
      rank,
      code,
      files_.last_line(name + ".log"));
  if (!ends_job(code) || stopping_) co_return;
  if (outcome_ == ExitCode::success) outcome_ = static_cast<ExitCode>(code);
  stop();
}

void Launcher::stop() {
  stopping_ = true;
  if (ps_) ps_->signal(SIGTERM);
}

ExitCode run_job(const CommonOptions& options, const std::string& program) {
  const Config config = load_config(options.config_path, options.overrides);
  Role role("run", config.job.seed);
  // The roles read the data again; a mistake shows here once, before anything is written.
  static_cast<void>(load_workload(role.host().storage, config, DataNeed::train_and_test));
  if (!options.json) {
    fmt::print(
        "job {}: 1 PS, {} workers, {} with T={}; logs in {}/\n",
        config.job.name,
        config.cluster.workers,
        to_string(config.sync.strategy),
        config.sync.period ? std::to_string(*config.sync.period) : "auto",
        run_directory(config));
    std::fflush(stdout);
  }
  Launcher launcher(role.real(), {program, config, options.json});
  role.run(launcher.run(), [&launcher] { launcher.stop(); });
  return launcher.outcome();
}

}  // namespace stagger
