#include "engine/replay_profile.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/config_value.hpp"
#include "engine/job.hpp"
#include "engine/shipped_profiles.hpp"
#include "ps/planner.hpp"

namespace stagger {
namespace {

constexpr double float_bytes = sizeof(float);
constexpr std::size_t layers_max = 4096;  // so that a worker's hello fits one frame
constexpr std::size_t name_bytes_max = 100;
constexpr double parameters_max = 4294967296.0;  // 16 GiB in every copy
constexpr double seconds_max = 86400.0;          // of one iteration

std::string no_such_profile(const std::string& name) {
  const std::vector<std::string> names = shipped_profile_names();
  std::string message = fmt::format(
      "profile {}: there is no such file, and no shipped profile of that name; shipped: {}",
      toml_text(name),
      join_names(names));
  if (const auto nearest = nearest_name(name, names)) {
    message += fmt::format("; did you mean \"{}\"?", *nearest);
  }
  return message;
}

std::vector<LayerProfile> parse(std::string_view text, const std::string& source) {
  auto layers = parse_profile_csv(text, source);
  if (layers.has_error()) throw DataError(layers.error().detail);
  return *std::move(layers);
}

/// Names become keys of checkpoints and travel in messages.
void check_names(const std::vector<LayerProfile>& profile, const std::string& source) {
  if (profile.size() > layers_max) {
    throw DataError(fmt::format(
        "{}: {} layers; at most {} can be replayed", source, profile.size(), layers_max));
  }
  std::set<std::string_view> seen;
  for (const LayerProfile& layer : profile) {
    const bool readable =
        layer.name.size() <= name_bytes_max && std::ranges::all_of(layer.name, [](char letter) {
          return letter > ' ' && letter <= '~' && letter != '"' && letter != '\\';
        });
    if (!readable) {
      throw DataError(fmt::format(
          "{}: layer {}: a name is 1 to {} printable ASCII characters without blanks and quotes",
          source,
          toml_text(layer.name),
          name_bytes_max));
    }
    if (!seen.insert(layer.name).second) {
      throw DataError(fmt::format("{}: layer {} is there twice", source, toml_text(layer.name)));
    }
  }
}

void check_totals(double parameters, double seconds, const std::string& source) {
  if (parameters > parameters_max) {
    throw DataError(fmt::format(
        "{}: {:.0f} parameters; at most {:.0f} can be replayed: lower backend.bytes_scale",
        source,
        parameters,
        parameters_max));
  }
  if (seconds > seconds_max) {
    throw DataError(fmt::format(
        "{}: an iteration would compute for {:.0f} s; at most {:.0f} can be replayed: lower "
        "backend.time_scale or backend.backward_ratio",
        source,
        seconds,
        seconds_max));
  }
}

}  // namespace

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const ShippedProfile& profile : shipped_profiles())
    names.emplace_back(profile.name);
  return names;
}

std::vector<LayerProfile> load_profile(const Storage& storage, const std::string& name) {
  const auto shipped = shipped_profiles();
  const auto found = std::ranges::find(shipped, name, &ShippedProfile::name);
  if (found != shipped.end()) return parse(found->csv, name);
  const auto bytes = storage.read(name);
  if (bytes.has_error()) {
    const bool missing = bytes.error().code == Errc::not_found;
    throw DataError(missing ? no_such_profile(name) : describe(bytes.error()));
  }
  return parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, name);
}

std::vector<LayerProfile> scaled_profile(
    std::vector<LayerProfile> profile, const ReplayScale& scale, const std::string& source) {
  check_names(profile, source);
  double parameters = 0.0;
  double seconds = 0.0;
  for (const LayerProfile& layer : profile) {
    const double ratio = scale.backward_ratio.value_or(0.0);
    parameters += static_cast<double>(layer.bytes) / float_bytes * scale.bytes;
    seconds += to_seconds(layer.forward) * scale.time * (1.0 + ratio);
    if (!scale.backward_ratio) seconds += to_seconds(layer.backward) * scale.time;
  }
  check_totals(parameters, seconds, source);
  for (LayerProfile& layer : profile) {
    if (scale.backward_ratio) {
      layer.backward = from_seconds(to_seconds(layer.forward) * *scale.backward_ratio);
    }
    layer.forward = from_seconds(to_seconds(layer.forward) * scale.time);
    layer.backward = from_seconds(to_seconds(layer.backward) * scale.time);
    if (layer.bytes == 0) continue;
    const double count = static_cast<double>(layer.bytes) / float_bytes * scale.bytes;
    layer.parameters = static_cast<std::uint64_t>(std::max(std::round(count), 1.0));
    layer.bytes = layer.parameters * sizeof(float);
  }
  return profile;
}

ReplayArchitecture::ReplayArchitecture(std::string name, const std::vector<LayerProfile>& profile)
    : name_(std::move(name)) {
  for (std::size_t layer = 0; layer < profile.size(); ++layer) {
    layer_names_.push_back(profile[layer].name);
    if (profile[layer].parameters == 0) continue;
    parameters_.push_back(
        {.name = profile[layer].name + ".weight",
         .shape = {profile[layer].parameters},
         .layer = layer});
  }
}

}  // namespace stagger
