#include "engine/workload.hpp"

#include <utility>

#include "engine/job.hpp"
#include "engine/replay_backend.hpp"
#include "observability/check.hpp"

namespace stagger {
namespace {

/// A model on data.
class Training final : public Workload {
 public:
  Training(const Config& config, Dataset train, std::optional<Dataset> test)
      : config_(config),
        train_(std::move(train)),
        test_(std::move(test)),
        order_(batch_order(config_, train_)),
        model_(build_model(config_, train_, 1)) {}

  const Architecture& architecture() const override { return *model_; }

  Iteration last_iteration() const override { return stagger::last_iteration(config_, order_); }

  std::unique_ptr<Backend> make_backend(ComputeBackend::Options options) const override {
    return std::make_unique<ComputeBackend>(
        build_model(config_, train_, config_.data.batch), train_, order_, options);
  }

  std::optional<std::vector<LayerProfile>> known_profile() const override { return std::nullopt; }

  std::optional<Evaluation> evaluate(const Arena& center) const override {
    constexpr std::size_t batch_max = 250;
    CHECK(test_.has_value(), "no test data were loaded");
    const auto model = build_model(config_, *test_, batch_max);
    return stagger::evaluate(*model, batch_max, center, *test_);
  }

 private:
  Config config_;
  Dataset train_;
  std::optional<Dataset> test_;
  BatchOrder order_;
  std::unique_ptr<Model> model_;
};

/// Layer times and sizes of a profile.
class Replay final : public Workload {
 public:
  Replay(const Config& config, std::string name, std::vector<LayerProfile> profile, Iteration last)
      : config_(config),
        profile_(std::move(profile)),
        architecture_("replay of " + std::move(name), profile_),
        last_(last) {}

  const Architecture& architecture() const override { return architecture_; }

  Iteration last_iteration() const override { return last_; }

  std::unique_ptr<Backend> make_backend(ComputeBackend::Options /*options*/) const override {
    return std::make_unique<ReplayBackend>(
        architecture_,
        profile_,
        ReplayBackend::Options{
            .seed = config_.job.seed,
            .batch = config_.data.batch,
            .jitter = config_.backend.jitter});
  }

  std::optional<std::vector<LayerProfile>> known_profile() const override { return profile_; }

  std::optional<Evaluation> evaluate(const Arena& /*center*/) const override {
    return std::nullopt;
  }

 private:
  Config config_;
  std::vector<LayerProfile> profile_;
  ReplayArchitecture architecture_;
  Iteration last_;
};

}  // namespace

std::unique_ptr<Workload> load_workload(
    const Storage& storage, const Config& config, DataNeed need) {
  if (config.backend.kind == BackendKind::replay) {
    const ReplayScale scale{
        .time = config.backend.time_scale,
        .bytes = config.backend.bytes_scale,
        .backward_ratio = config.backend.backward_ratio};
    const std::string& name = config.backend.profile;
    return std::make_unique<Replay>(
        config,
        name,
        scaled_profile(load_profile(storage, name), scale, name),
        Iteration(config.job.iterations));
  }
  std::optional<Dataset> test;
  if (need == DataNeed::train_and_test) test = load_test_data(storage, config);
  return std::make_unique<Training>(config, load_train_data(storage, config), std::move(test));
}

std::unique_ptr<Workload> make_training(const Config& config, Dataset train) {
  return std::make_unique<Training>(config, std::move(train), std::nullopt);
}

std::unique_ptr<Workload> make_replay(
    const Config& config, std::vector<LayerProfile> profile, Iteration last) {
  return std::make_unique<Replay>(config, config.model.name, std::move(profile), last);
}

std::vector<LayerProfile> nominal_layers(const Workload& workload, double flops_per_second) {
  const auto backend = workload.make_backend({.flops_per_second = flops_per_second});
  auto layers = layer_sizes(workload.architecture());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerRange layer{.begin = i, .end = i + 1};
    layers[i].forward = backend->forward_time(layer);
    layers[i].backward = backend->backward_time(layer);
  }
  return layers;
}

}  // namespace stagger
