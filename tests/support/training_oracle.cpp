#include "tests/support/training_oracle.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/job.hpp"
#include "kernels/elastic.hpp"
#include "observability/check.hpp"

namespace stagger {
namespace {

/// A worker of the equations.
struct Replica {
  std::unique_ptr<Model> model;
  Arena values;
  Arena gradients;
  Arena velocity;
  Arena pushed;  ///< what the round that is open in this iteration was given
};

class Training {
 public:
  Training(const Config& config, const Dataset& data)
      : config_(config),
        data_(data),
        order_(batch_order(config, data)),
        diloco_(config.sync.strategy == Strategy::diloco),
        rule_(diloco_ ? UpdateRule::post_step : config.sync.rule),
        alpha_(static_cast<float>(diloco_ ? config.sync.mixing : config.sync.alpha.value())),
        beta_(static_cast<float>(diloco_ ? config.sync.outer_lr : config.sync.beta.value())),
        sgd_{
            .learning_rate = static_cast<float>(config.optimizer.lr),
            .momentum = static_cast<float>(config.optimizer.momentum),
            .weight_decay = static_cast<float>(config.optimizer.weight_decay)} {
    const auto shape = build_model(config, data, config.data.batch);
    std::vector<LayerRange> ranges;
    for (const GroupRange& group : group_layers(layer_sizes(*shape), grouping_options(config))) {
      ranges.push_back(group.layers);
    }
    const ArenaLayout layout(shape->parameters(), ranges);
    center_ = Arena(layout);
    center_.assign(initial_center(*shape, config.job.seed));
    outer_velocity_ = Arena(layout);
    replicas_.reserve(config.cluster.workers);  // models are bound to their arenas
    for (std::uint32_t rank = 0; rank < config.cluster.workers; ++rank) {
      replicas_.push_back(
          {.model = build_model(config, data, config.data.batch),
           .values = Arena(layout),
           .gradients = Arena(layout),
           .velocity = Arena(layout),
           .pushed = Arena(layout)});
      Replica& replica = replicas_.back();
      replica.values.assign(center_);
      replica.model->bind(replica.values, replica.gradients);
    }
  }

  Arena run() && {
    const std::uint64_t last = config_.job.iterations;
    for (std::uint64_t j = 1; j <= last; ++j)
      iterate(j);
    for (std::size_t g = 0; g < groups(); ++g) {  // the final round
      for (Replica& replica : replicas_)
        copy(replica.values.group(g), replica.pushed.group(g));
      move_center(g);
    }
    return std::move(center_);
  }

 private:
  std::size_t groups() const { return center_.layout().groups(); }

  bool is_due(std::size_t group, std::uint64_t iteration) const {
    const std::uint64_t period = config_.sync.period.value();
    const bool residue = config_.sync.phases == PhaseRule::residue;
    if (config_.sync.strategy == Strategy::easgd || (diloco_ && !residue)) {
      return iteration % period == 0;
    }
    return (groups() - group) % period == iteration % period;
  }

  static void copy(std::span<const float> from, std::span<float> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }

  void iterate(std::uint64_t iteration) {
    for (std::uint32_t rank = 0; rank < replicas_.size(); ++rank) {
      Replica& replica = replicas_[rank];
      Batch batch;
      gather(data_, order_.samples(iteration, rank), batch);
      const LayerRange all{.begin = 0, .end = replica.model->layer_names().size()};
      replica.model->load(batch);
      replica.model->forward(all);
      replica.model->loss();
      replica.model->backward(all);
    }
    for (std::size_t g = 0; g < groups(); ++g) {
      for (Replica& replica : replicas_)
        step(replica, g, is_due(g, iteration));
      if (!is_due(g, iteration)) continue;
      move_center(g);
      for (Replica& replica : replicas_)
        pull(replica, g);
    }
  }

  /// w - step, with old_center's pull by the center before the round; keeps what is pushed.
  void step(Replica& replica, std::size_t g, bool due) {
    const auto w = replica.values.group(g);
    const auto gradient = std::as_const(replica.gradients).group(g);
    const auto velocity = sgd_.momentum == 0.0F ? std::span<float>() : replica.velocity.group(g);
    if (due && rule_ != UpdateRule::post_step) copy(w, replica.pushed.group(g));
    if (due && rule_ == UpdateRule::old_center) {
      const auto c = std::as_const(center_).group(g);
      reference::sgd_elastic_step(w, gradient, velocity, c, sgd_, alpha_);
    } else {
      reference::sgd_step(w, gradient, velocity, sgd_);
    }
    if (due && rule_ == UpdateRule::post_step) copy(w, replica.pushed.group(g));
  }

  /// c' = c + beta*(mean of the pushed - c), summed in rank order; diloco's step has momentum.
  void move_center(std::size_t g) {
    std::vector<float> sum;
    for (const Replica& replica : replicas_) {
      const auto pushed = replica.pushed.group(g);
      if (sum.empty()) {
        sum.assign(pushed.begin(), pushed.end());
      } else {
        reference::accumulate(sum, pushed);
      }
    }
    const auto c = center_.group(g);
    const auto momentum = static_cast<float>(diloco_ ? config_.sync.outer_momentum : 0.0);
    if (momentum > 0) {
      const OuterConstants outer{.learning_rate = beta_, .momentum = momentum};
      const Attendance all{.present = replicas_.size(), .workers = replicas_.size()};
      reference::outer_center(sum, c, outer_velocity_.group(g), outer, all);
    } else {
      reference::elastic_center(sum, c, beta_, replicas_.size(), replicas_.size());
    }
    copy(sum, c);
  }

  /// The pull by the center after the round, of the rules that have one.
  void pull(Replica& replica, std::size_t g) {
    const auto w = replica.values.group(g);
    const auto c = std::as_const(center_).group(g);
    if (rule_ == UpdateRule::fresh_center) {
      reference::elastic_pull(w, std::as_const(replica.pushed).group(g), c, alpha_);
    } else if (rule_ == UpdateRule::post_step) {
      reference::elastic_mix(w, c, alpha_);
    }
  }

  const Config& config_;
  const Dataset& data_;
  BatchOrder order_;
  bool diloco_;
  UpdateRule rule_;
  float alpha_;
  float beta_;
  SgdConstants sgd_;
  Arena center_;
  Arena outer_velocity_;
  std::vector<Replica> replicas_;
};

}  // namespace

Arena train_by_the_equations(const Config& config, const Dataset& data) {
  CHECK(
      config.sync.strategy != Strategy::local_sgd && config.sync.strategy != Strategy::bsp,
      "no equations for this strategy");
  return Training(config, data).run();
}

}  // namespace stagger
