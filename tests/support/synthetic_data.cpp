#include "tests/support/synthetic_data.hpp"

#include "kernels/rng.hpp"

namespace stagger {

Dataset synthetic_dataset(std::size_t samples, std::uint64_t seed) {
  constexpr std::size_t side = 4;
  constexpr std::uint32_t classes = 4;
  Dataset data;
  data.shape = {1, side, side};
  data.classes = classes;
  data.mean = 0.4F;
  data.deviation = 0.3F;
  RandomSequence random(seed, fnv1a("synthetic dataset"));
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::uint32_t label = random.below(classes);
    data.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::size_t pixel = 0; pixel < side * side; ++pixel) {
      const std::size_t quarter = pixel / side / 2 * 2 + pixel % side / 2;
      const std::uint32_t brightness = random.below(128) + (quarter == label ? 100U : 0U);
      data.pixels.push_back(static_cast<std::uint8_t>(brightness));
    }
  }
  return data;
}

Config synthetic_config() {
  Config config;
  config.job.name = "synthetic";
  config.job.seed = 7;
  config.job.iterations = 12;
  config.model.name = "mlp";
  config.model.hidden = {12, 8};
  config.data.classes = 4;
  config.data.batch = 4;
  config.sync.period = 3;
  config.groups.planner = GroupPlanner::layerwise;
  config.slots.profile_iterations = 1;
  config.cluster.workers = 3;
  config.cluster.ps = {.host = "ps", .port = 7000};
  config.cluster.listen = config.cluster.ps;
  return config;
}

}  // namespace stagger
