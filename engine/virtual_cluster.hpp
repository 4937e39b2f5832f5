#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/simulation.hpp"
#include "engine/workload.hpp"
#include "net/storage.hpp"

/// A cluster that does not exist, as people describe it on a command line. Pure but for reading
/// files.
namespace stagger {

/// Texts are as the user wrote them; empty: the default that the comment names.
struct VirtualCluster {
  std::uint64_t seed = 1;
  std::uint32_t workers = 0;     ///< 0: as the config says
  std::string bandwidth;         ///< of the PS's link, both ways; 1gbit
  std::string reply_bandwidth;   ///< of the PS's way out; as `bandwidth`
  std::string worker_bandwidth;  ///< of each worker's link; as `bandwidth`
  std::string latency;           ///< of each link; 50us, so that a round trip takes 200us
  std::string buffer;            ///< of the switch ports; empty: no loss, frames go whole
  std::string clock_offset;      ///< workers' clocks are wrong by up to this; 0
  double clock_drift_ppm = 0.0;  ///< and gain or lose up to so many microseconds a second
  double jitter = 0.05;          ///< computing takes up to this share longer
  std::uint32_t stragglers = 0;
  double straggler_factor = 2.0;
  std::uint64_t shrink = 0;  ///< parameters in memory are 1/shrink of those on the wire; 0: derived
  bool train = false;        ///< real arithmetic on real data
};

/// Everything that simulate() needs.
struct VirtualJob {
  Config config;
  SimulationOptions options;
  std::unique_ptr<Workload> workload;
  std::vector<LayerProfile> layers;  ///< with the times and sizes of the virtual machines
  Config full;                       ///< the config before it was shrunk, with `[link]` known
};

/// Without `train`, layers take their times and nothing is computed: of a profile where the config
/// replays one, else of the model on the simulated processors. A replayed model that would not fit
/// this machine's memory is shrunk: parameters, chunks and limits are divided, and each byte counts
/// as so many on the wire, so that times and byte counts are those of the whole.
///
/// Throws ConfigError, which names the flag, and DataError.
VirtualJob make_virtual_job(const Storage& storage, Config config, const VirtualCluster& cluster);

}  // namespace stagger
