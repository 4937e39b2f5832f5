#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "engine/model.hpp"
#include "engine/worker.hpp"
#include "net/real/tcp_network.hpp"
#include "net/storage.hpp"
#include "ps/server.hpp"

/// From a config to the options of each role. Both roles derive the same numbers from the same
/// config.
namespace stagger {

/// A data file that is missing or wrong.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A result that could not be written.
struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws DataError, which names the file and what is wrong with it.
Dataset load_train_data(const Storage& storage, const Config& config);
Dataset load_test_data(const Storage& storage, const Config& config);

/// The model of the config for the data's shape.
std::unique_ptr<Model> build_model(
    const Config& config, const Dataset& data, std::size_t batch_max);

/// The initial center: equal for all, from the job's seed.
Arena initial_center(const Architecture& architecture, std::uint64_t seed);

BatchOrder batch_order(const Config& config, const Dataset& train);

/// job.iterations, or from job.epochs.
Iteration last_iteration(const Config& config, const BatchOrder& order);

LearningRateSchedule learning_rate_schedule(const Config& config, Iteration last);

/// Layers with names and sizes, without times.
std::vector<LayerProfile> layer_sizes(const Architecture& architecture);

ServerOptions server_options(
    const Config& config, const Architecture& architecture, Iteration last);
WorkerOptions worker_options(
    const Config& config, const Architecture& architecture, Iteration last, std::int32_t rank);

TcpOptions tcp_options(const Config& config);

/// "runs/quickstart".
std::string run_directory(const Config& config);

}  // namespace stagger
