#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/architecture.hpp"
#include "engine/backend.hpp"
#include "engine/compute_backend.hpp"
#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "engine/evaluation.hpp"
#include "net/storage.hpp"
#include "ps/grouping.hpp"

/// What a config wants computed: what distinguishes training from a replay of a profile is here and
/// nowhere else.
namespace stagger {

/// For:     every command that runs, simulates or plans a job.
/// Owner:   the command; outlives the backends it makes.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual const Architecture& architecture() const = 0;
  virtual Iteration last_iteration() const = 0;

  /// One worker's.
  virtual std::unique_ptr<Backend> make_backend(ComputeBackend::Options options) const = 0;

  /// Layers with the times that are known without measuring, if they are.
  virtual std::optional<std::vector<LayerProfile>> known_profile() const = 0;

  /// Accuracy and loss on the test data; none where there are none. REQUIRES that test data were
  /// loaded.
  virtual std::optional<Evaluation> evaluate(const Arena& center) const = 0;
};

/// Which data a command needs.
enum class DataNeed { train, train_and_test };

/// Throws DataError, which names the file and what is wrong with it.
std::unique_ptr<Workload> load_workload(
    const Storage& storage, const Config& config, DataNeed need);

/// The same on data that are there already; no test data.
std::unique_ptr<Workload> make_training(const Config& config, Dataset train);

/// Layers with these times and sizes, and nothing computed, for so many iterations.
std::unique_ptr<Workload> make_replay(
    const Config& config, std::vector<LayerProfile> profile, Iteration last);

/// Each layer as long as a simulated machine computes it.
std::vector<LayerProfile> nominal_layers(const Workload& workload, double flops_per_second);

}  // namespace stagger
