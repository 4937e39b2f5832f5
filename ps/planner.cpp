#include "ps/planner.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "observability/check.hpp"

namespace stagger {
namespace {

constexpr std::array<std::string_view, 5> columns{
    "name", "params", "bytes", "t_fwd_us", "t_bwd_us"};
constexpr std::string_view header_line = "name,params,bytes,t_fwd_us,t_bwd_us";
constexpr double microseconds_max = 3.6e9;  // an hour: the sum over all layers stays a Duration

Plan assemble(
    std::span<const LayerProfile> layers,
    const std::vector<GroupRange>& groups,
    const SyncPolicy& policy,
    Admission admission,
    const SlotOptions& options) {
  Plan plan;
  plan.policy = policy;
  plan.admission = admission;
  plan.slot_rule = options.rule;
  plan.slot_clock = options.clock;
  for (const GroupRange& group : groups)
    plan.groups.push_back({.range = group, .slot = {}, .phase = 0});
  set_phases(plan);
  CHECK(options.rule == SlotRule::paper || options.link, "slots by a link that is not known");
  const std::vector<SlotWindow> slots =
      options.rule == SlotRule::paper
          ? paper_slots(group_timeline(layers, groups), policy.period, policy.workers)
          : measured_slots(
                plan, options.layers.empty() ? layers : options.layers, options.link.value());
  for (std::size_t group = 0; group < groups.size(); ++group)
    plan.groups[group].slot = slots[group];
  return plan;
}

Duration lower_median(std::vector<Duration> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// One line being read, with what messages need.
struct LineReader {
  std::string_view source;
  std::size_t number = 0;  ///< of the line, from 1
  std::string_view text;
  std::size_t begin = 0;  ///< of the field that is next
  std::size_t field = 0;

  Error error(std::size_t column, std::string_view what) const {
    return Error{
        .code = Errc::bad_message,
        .detail = fmt::format("{}:{}:{}: {}", source, number, column + 1, what)};
  }

  Result<std::string_view> next() {
    const std::string_view name = columns.at(field);
    if (begin > text.size()) return error(text.size(), fmt::format("{} is missing", name));
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view value = text.substr(begin, end - begin);
    if (value.empty()) return error(begin, fmt::format("{} is missing", name));
    begin = end + 1;
    ++field;
    return value;
  }

  /// A field that is a number all through, not negative and at most `largest`.
  template <class Number>
  Result<Number> next_number(Number largest) {
    const std::size_t column = begin;
    const auto value = next();
    if (value.has_error()) return value.error();
    const std::string_view name = columns.at(field - 1);
    if (value->front() == '-')
      return error(column, fmt::format("{} = {} is negative", name, *value));
    Number parsed{};
    const char* const end = std::to_address(value->end());
    const auto [stop, code] = std::from_chars(std::to_address(value->begin()), end, parsed);
    if (code == std::errc::result_out_of_range || (stop == end && parsed > largest)) {
      return error(column, fmt::format("{} = {} is above {}", name, *value, largest));
    }
    if (code != std::errc{} || stop != end || !(parsed <= largest)) {
      return error(column, fmt::format("{} = {} is not a number", name, *value));
    }
    return parsed;
  }
};

/// Parameters without bytes and bytes without parameters are refused: groups are made by both.
Result<LayerProfile> parse_line(LineReader& line) {
  constexpr std::uint64_t count_max = std::uint64_t{1} << 50;
  LayerProfile layer;
  const auto name = line.next();
  if (name.has_error()) return name.error();
  layer.name = *name;
  const auto parameters = line.next_number<std::uint64_t>(count_max);
  if (parameters.has_error()) return parameters.error();
  const std::size_t bytes_column = line.begin;
  const auto bytes = line.next_number<std::uint64_t>(count_max);
  if (bytes.has_error()) return bytes.error();
  if ((*parameters == 0) != (*bytes == 0)) {
    return line.error(
        bytes_column, fmt::format("{} parameters in {} bytes cannot be", *parameters, *bytes));
  }
  const auto forward = line.next_number<double>(microseconds_max);
  if (forward.has_error()) return forward.error();
  const auto backward = line.next_number<double>(microseconds_max);
  if (backward.has_error()) return backward.error();
  if (line.begin <= line.text.size()) {
    return line.error(line.begin - 1, fmt::format("more than {} fields", columns.size()));
  }
  layer.parameters = *parameters;
  layer.bytes = *bytes;
  layer.forward = from_microseconds(*forward);
  layer.backward = from_microseconds(*backward);
  return layer;
}

}  // namespace

Plan make_plan(const PlanRequest& request) {
  return assemble(
      request.layers,
      group_layers(request.layers, request.grouping),
      request.policy,
      request.admission,
      request.slots);
}

Plan replan(
    const Plan& current,
    std::span<const LayerProfile> layers,
    const SyncPolicy& policy,
    Admission admission,
    const SlotOptions& slots) {
  std::vector<GroupRange> groups;
  groups.reserve(current.groups.size());
  for (const PlannedGroup& group : current.groups)
    groups.push_back(group.range);
  Plan plan = assemble(layers, groups, policy, admission, slots);
  plan.version = current.version.next();
  plan.first_iteration = current.first_iteration;
  return plan;
}

std::vector<LayerProfile> merge_profiles(std::span<const std::vector<LayerProfile>> profiles) {
  CHECK(!profiles.empty(), "no profile");
  std::vector<LayerProfile> merged = profiles.front();
  for (const auto& profile : profiles)
    CHECK_EQ(profile.size(), merged.size());
  for (std::size_t layer = 0; layer < merged.size(); ++layer) {
    std::vector<Duration> forward;
    std::vector<Duration> backward;
    for (const auto& profile : profiles) {
      forward.push_back(profile[layer].forward);
      backward.push_back(profile[layer].backward);
    }
    merged[layer].forward = lower_median(std::move(forward));
    merged[layer].backward = lower_median(std::move(backward));
  }
  return merged;
}

std::vector<LayerProfile> latest_profile(std::span<const std::vector<LayerProfile>> profiles) {
  std::vector<LayerProfile> latest = merge_profiles(profiles);
  std::vector<Duration> done(profiles.size(), Duration{0});  // backward, from the output side
  Duration last_done{0};
  for (std::size_t layer = latest.size(); layer-- > 0;) {
    for (std::size_t worker = 0; worker < profiles.size(); ++worker)
      done[worker] += profiles[worker][layer].backward;
    const Duration now_done = std::ranges::max(done);
    latest[layer].backward = now_done - last_done;
    last_done = now_done;
  }
  return latest;
}

std::vector<LayerProfile> scaled_times(std::vector<LayerProfile> layers, double factor) {
  constexpr Duration longest = std::chrono::hours(1);
  const auto scaled = [factor, longest](Duration time) {
    return std::min(saturated(static_cast<double>(time.count()) * factor), longest);
  };
  for (LayerProfile& layer : layers) {
    layer.forward = scaled(layer.forward);
    layer.backward = scaled(layer.backward);
  }
  return layers;
}

Result<std::vector<LayerProfile>> parse_profile_csv(
    std::string_view text, std::string_view source) {
  std::vector<LayerProfile> layers;
  bool trained = false;
  LineReader line{.source = source, .number = 0, .text = {}, .begin = 0, .field = 0};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view content = text.substr(begin, end - begin);
    if (content.ends_with('\r')) content.remove_suffix(1);
    begin = end + 1;
    line = {.source = source, .number = line.number + 1, .text = content, .begin = 0, .field = 0};
    if (content.empty() || (line.number == 1 && content == header_line)) continue;
    auto layer = parse_line(line);
    if (layer.has_error()) return layer.error();
    trained = trained || layer->parameters > 0;
    layers.push_back(*std::move(layer));
  }
  if (!trained) {
    line.number = std::max<std::size_t>(line.number, 1);
    return line.error(0, "no layer with parameters; expected lines of " + std::string(header_line));
  }
  return layers;
}

}  // namespace stagger
