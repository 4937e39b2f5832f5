#include "engine/virtual_cluster.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/job.hpp"
#include "engine/units.hpp"

namespace stagger {
namespace {

/// What all replicas of a shrunk model may take, with the arenas that a worker keeps beside it.
constexpr double memory_bytes_max = 1e9;
constexpr double arenas_per_worker = 4.0;
constexpr std::uint64_t chunk_bytes_min = 256;
constexpr std::uint64_t chunk_bytes_step = 64;
constexpr std::uint32_t workers_max = 4096;
constexpr double links_of_a_push = 2.0;

template <class Value>
Value checked(const char* flag, Result<Value> value) {
  if (!value) throw ConfigError(std::string(flag) + " " + value.error().detail);
  return *value;
}

double rate(const char* flag, const std::string& text, double otherwise) {
  return text.empty() ? otherwise : checked(flag, parse_rate(text));
}

Duration duration(const char* flag, const std::string& text, Duration otherwise) {
  return text.empty() ? otherwise : from_microseconds(checked(flag, parse_microseconds(text)));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw ConfigError(what);
}

/// A window that the kernel would not open further than its own limits is the default.
TcpModelOptions tcp_model(const Config& config) {
  TcpModelOptions tcp;
  if (config.wire.window_bytes > 0) tcp.receive_bytes_max = config.wire.window_bytes;
  return tcp;
}

SimulationOptions options_of(const Config& config, const VirtualCluster& cluster) {
  constexpr double rate_default = 1e9;
  SimulationOptions options;
  options.seed = cluster.seed;
  options.compute_jitter = cluster.jitter;
  options.stragglers = cluster.stragglers;
  options.straggler_factor = cluster.straggler_factor;
  options.clock_offset_max = duration("--clock-offset", cluster.clock_offset, Duration{0});
  options.clock_drift_ppm_max = cluster.clock_drift_ppm;
  LinkOptions link;
  link.latency = duration("--latency", cluster.latency, 50us);
  if (!cluster.buffer.empty()) {
    link.queue_bytes_max = checked("--buffer", parse_bytes(cluster.buffer));
    options.tcp = tcp_model(config);
  }
  link.rate_bits_per_second = rate("--bandwidth", cluster.bandwidth, rate_default);
  NodeOptions ps{.egress = link, .ingress = link};
  ps.egress.rate_bits_per_second =
      rate("--reply-bandwidth", cluster.reply_bandwidth, link.rate_bits_per_second);
  link.rate_bits_per_second =
      rate("--worker-bandwidth", cluster.worker_bandwidth, link.rate_bits_per_second);
  options.node = {.egress = link, .ingress = link};
  options.ps = ps;
  return options;
}

void check(const VirtualCluster& cluster, const Config& config) {
  const std::uint32_t workers = config.cluster.workers;
  require(
      workers >= 1 && workers <= workers_max,
      fmt::format("--workers {}: 1 to {}", workers, workers_max));
  require(
      std::isfinite(cluster.jitter) && cluster.jitter >= 0 && cluster.jitter <= 100,
      fmt::format("--jitter {}: a share from 0 to 100", cluster.jitter));
  require(
      cluster.stragglers <= workers,
      fmt::format("--stragglers {}: there are {} workers", cluster.stragglers, workers));
  require(
      cluster.clock_drift_ppm >= 0 && cluster.clock_drift_ppm <= 1e5,
      fmt::format("--clock-drift-ppm {}: from 0 to 100000", cluster.clock_drift_ppm));
  require(
      cluster.straggler_factor >= 1 && cluster.straggler_factor <= 1000,
      fmt::format("--straggler-factor {}: from 1 to 1000", cluster.straggler_factor));
}

/// The config's own link where it names one, else the virtual one: what plans reckon with.
void know_link(Config& config, const SimulationOptions& options) {
  if (config.link.rate_bits_per_second) return;
  config.link.rate_bits_per_second = options.ps->ingress.rate_bits_per_second;
  config.link.start_us = links_of_a_push * to_microseconds(options.node.egress.latency);
}

std::uint64_t shrink_for(const Config& config, std::uint64_t parameter_bytes) {
  const double needed =
      static_cast<double>(parameter_bytes) * arenas_per_worker * config.cluster.workers;
  const std::uint64_t most = std::max<std::uint64_t>(config.wire.chunk_bytes / chunk_bytes_min, 1);
  std::uint64_t shrink = 1;
  while (needed / static_cast<double>(shrink) > memory_bytes_max && shrink * 2 <= most)
    shrink *= 2;
  return shrink;
}

/// Everything that counts bytes, divided.
void shrink_config(Config& config, std::uint64_t shrink) {
  const auto divided = [shrink](std::uint64_t bytes) {
    return std::max<std::uint64_t>(bytes / shrink, 1);
  };
  config.backend.bytes_scale /= static_cast<double>(shrink);
  config.wire.chunk_bytes = std::max(
      divided(config.wire.chunk_bytes) / chunk_bytes_step * chunk_bytes_step, chunk_bytes_min);
  config.wire.early_bytes_max =
      std::max(divided(config.wire.early_bytes_max), config.wire.chunk_bytes);
  config.groups.bytes_max = divided(config.groups.bytes_max);
  config.groups.first_bytes_max = divided(config.groups.first_bytes_max);
  if (config.link.rate_bits_per_second)
    *config.link.rate_bits_per_second /= static_cast<double>(shrink);
}

std::uint64_t parameter_bytes(const Workload& workload) {
  std::uint64_t bytes = 0;
  for (const LayerProfile& layer : layer_sizes(workload.architecture()))
    bytes += layer.bytes;
  return bytes;
}

}  // namespace

VirtualJob make_virtual_job(const Storage& storage, Config config, const VirtualCluster& cluster) {
  if (cluster.workers > 0) config.cluster.workers = cluster.workers;
  check(cluster, config);
  VirtualJob job{
      .config = config,
      .options = options_of(config, cluster),
      .workload = {},
      .layers = {},
      .full = {}};
  job.full = config;
  know_link(job.full, job.options);
  const bool replayed = config.backend.kind == BackendKind::replay;
  require(
      !(cluster.train && replayed), "--train: backend.name is \"replay\", which computes nothing");
  job.workload =
      load_workload(storage, config, cluster.train ? DataNeed::train_and_test : DataNeed::train);
  job.layers = nominal_layers(*job.workload, job.options.flops_per_second);
  if (cluster.train) return job;
  if (!replayed) {
    job.workload = make_replay(config, job.layers, job.workload->last_iteration());
    return job;
  }
  const std::uint64_t shrink =
      cluster.shrink > 0 ? cluster.shrink : shrink_for(config, parameter_bytes(*job.workload));
  if (shrink == 1) return job;
  shrink_config(job.config, shrink);
  job.options.wire_bytes_per_byte = shrink;
  job.workload = load_workload(storage, job.config, DataNeed::train);
  return job;
}

}  // namespace stagger
