#include "engine/measured_profile.hpp"

#include <utility>

#include <fmt/format.h>

#include "engine/job.hpp"
#include "engine/layer_times.hpp"
#include "engine/workload.hpp"

namespace stagger {

std::vector<LayerProfile> profile_of(Role& role, const Config& config) {
  const auto workload = load_workload(role.host().storage, config, DataNeed::train);
  if (auto known = workload->known_profile()) return *std::move(known);
  const auto backend = workload->make_backend({});
  LayerTimes times(role.host(), *backend);
  role.run(times.measure(config.slots.profile_iterations, WorkerId(0)), [] {});
  auto layers = layer_sizes(workload->architecture());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].forward = times.profile().forward[i];
    layers[i].backward = times.profile().backward[i];
  }
  return layers;
}

std::string profile_csv(const std::vector<LayerProfile>& layers) {
  std::string text = "name,params,bytes,t_fwd_us,t_bwd_us\n";
  for (const LayerProfile& layer : layers) {
    text += fmt::format(
        "{},{},{},{:.3f},{:.3f}\n",
        layer.name,
        layer.parameters,
        layer.bytes,
        to_microseconds(layer.forward),
        to_microseconds(layer.backward));
  }
  return text;
}

}  // namespace stagger
