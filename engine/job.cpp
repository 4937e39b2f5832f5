#include "engine/job.hpp"

#include <algorithm>
#include <utility>

#include "engine/config_conflicts.hpp"

namespace stagger {

namespace {

Dataset load(
    const Storage& storage,
    const Config& config,
    const std::string& images,
    const std::string& labels,
    std::uint64_t samples) {
  auto data = read_idx(storage, images, labels, config.data.classes);
  if (!data) throw DataError(describe(data.error()));
  data->mean = static_cast<float>(config.data.mean);
  data->deviation = static_cast<float>(config.data.deviation);
  if (samples > 0 && samples < data->size()) {
    data->pixels.resize(samples * data->sample_size());
    data->labels.resize(samples);
  }
  return std::move(*data);
}

SgdConstants sgd_constants(const Config& config) {
  return {
      .learning_rate = static_cast<float>(config.optimizer.lr),
      .momentum = static_cast<float>(config.optimizer.momentum),
      .weight_decay = static_cast<float>(config.optimizer.weight_decay)};
}

}  // namespace

Dataset load_train_data(const Storage& storage, const Config& config) {
  return load(
      storage,
      config,
      config.data.train_images,
      config.data.train_labels,
      config.data.train_samples);
}

Dataset load_test_data(const Storage& storage, const Config& config) {
  return load(
      storage, config, config.data.test_images, config.data.test_labels, config.data.test_samples);
}

std::unique_ptr<Model> build_model(
    const Config& config, const Dataset& data, std::size_t batch_max) {
  ModelSpec spec = config.model;
  spec.input = data.shape;
  spec.classes = config.data.classes;
  return make_model(spec, batch_max);
}

Arena initial_center(const Architecture& architecture, std::uint64_t seed) {
  Arena values(ArenaLayout(architecture.parameters(), {{0, architecture.layer_names().size()}}));
  initialize(values, seed);
  return values;
}

BatchOrder batch_order(const Config& config, const Dataset& train) {
  const std::uint64_t global = config.data.batch * config.cluster.workers;
  if (!config.data.keep_last && train.size() < global) {
    throw DataError(
        config.data.train_images + ": " + std::to_string(train.size()) +
        " samples do not fill one global batch of " + std::to_string(global) +
        " (data.batch * cluster.workers); lower data.batch or set data.keep_last = true");
  }
  return BatchOrder(
      train.size(),
      config.data.batch,
      config.cluster.workers,
      config.job.seed,
      config.data.keep_last);
}

Iteration last_iteration(const Config& config, const BatchOrder& order) {
  if (config.job.iterations > 0) return Iteration(config.job.iterations);
  return Iteration(config.job.epochs * order.iterations_per_epoch());
}

LearningRateSchedule learning_rate_schedule(const Config& config, Iteration last) {
  return {
      .kind = config.optimizer.schedule,
      .base = config.optimizer.lr,
      .warmup_iterations = config.optimizer.warmup_iterations,
      .total_iterations = last.value(),
      .floor = config.optimizer.floor,
      .step_iterations = config.optimizer.step_iterations,
      .step_factor = config.optimizer.step_factor};
}

std::vector<LayerProfile> layer_sizes(const Architecture& architecture) {
  std::vector<LayerProfile> layers;
  for (const std::string& name : architecture.layer_names()) {
    layers.push_back(
        {.name = name,
         .parameters = 0,
         .bytes = 0,
         .forward = Duration{0},
         .backward = Duration{0}});
  }
  for (const ParameterInfo& parameter : architecture.parameters()) {
    layers[parameter.layer].parameters += parameter.size();
    layers[parameter.layer].bytes += parameter.size() * sizeof(float);
  }
  return layers;
}

ServerOptions server_options(
    const Config& config, const Architecture& architecture, Iteration last) {
  ServerOptions options;
  options.job = config.job.name;
  options.listen = config.cluster.listen.host.empty() ? config.cluster.ps : config.cluster.listen;
  options.layers = layer_sizes(architecture);
  options.schema_hash = schema_hash(architecture.parameters());
  options.settings = result_settings(config);
  options.policy = policy_request(config);
  options.grouping = grouping_options(config);
  options.period_auto = !config.sync.period;
  options.link = link_cost(config);
  options.link_wanted = find_link_need(config).has_value();
  options.slot_guard = config.slots.guard;
  options.admission = config.slots.admission;
  options.slots = slot_options(config);
  options.turns = {
      .concurrent = config.slots.concurrent, .stall_max = config.slots.turn_limit, .early = true};
  options.last_iteration = last;
  options.final_round = config.sync.final_round;
  options.chunk_bytes = config.wire.chunk_bytes;
  options.early_bytes_max = config.wire.early_bytes_max;
  options.optimizer = sgd_constants(config);
  options.learning_rate = [schedule = learning_rate_schedule(config, last)](Iteration iteration) {
    return schedule.at(iteration.value());
  };
  options.timeouts = config.timeouts;
  return options;
}

WorkerOptions worker_options(
    const Config& config, const Architecture& architecture, Iteration last, std::int32_t rank) {
  WorkerOptions options;
  options.client.ps = config.cluster.ps;
  options.client.hello = {
      .protocol = protocol_version,
      .job = config.job.name,
      .rank = rank,
      .world = config.cluster.workers,
      .schema_hash = schema_hash(architecture.parameters()),
      .parameters = architecture.parameters(),
      .settings = result_settings(config)};
  options.client.chunk_bytes = config.wire.chunk_bytes;
  options.client.timeouts = config.timeouts;
  options.learning_rate = learning_rate_schedule(config, last);
  options.sgd = sgd_constants(config);
  options.profile_iterations = config.slots.profile_iterations;
  options.final_round = config.sync.final_round;
  return options;
}

TcpOptions tcp_options(const Config& config) {
  TcpOptions options;
  options.window_bytes = static_cast<int>(config.wire.window_bytes);
  return options;
}

std::string run_directory(const Config& config) {
  return config.job.directory + "/" + config.job.name;
}

}  // namespace stagger
