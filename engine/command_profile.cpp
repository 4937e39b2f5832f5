#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/job.hpp"
#include "engine/measured_profile.hpp"
#include "engine/role.hpp"

namespace stagger {

ExitCode write_profile(const ProfileCommand& command) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("profile", config.job.seed);
  const auto layers = profile_of(role, config);
  const std::string text = profile_csv(layers);
  if (!command.out_path) {
    fmt::print("{}", text);
    return ExitCode::success;
  }
  const auto written =
      role.host().storage.write_atomic(*command.out_path, std::as_bytes(std::span(text)));
  if (written.has_error()) throw StorageError(describe(written.error()));
  Duration forward{0};
  Duration backward{0};
  std::uint64_t bytes = 0;
  for (const LayerProfile& layer : layers) {
    forward += layer.forward;
    backward += layer.backward;
    bytes += layer.bytes;
  }
  if (command.common.json) {
    const nlohmann::ordered_json facts{
        {"profile", *command.out_path},
        {"layers", layers.size()},
        {"bytes", bytes},
        {"forward_us", to_microseconds(forward)},
        {"backward_us", to_microseconds(backward)}};
    fmt::print("{}\n", facts.dump(2));
  } else {
    fmt::print(
        "{}: {} layers, {} bytes, forward {:.1f} us, backward {:.1f} us\n",
        *command.out_path,
        layers.size(),
        bytes,
        to_microseconds(forward),
        to_microseconds(backward));
  }
  return ExitCode::success;
}

}  // namespace stagger
