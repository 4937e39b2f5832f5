#include "engine/prediction_report.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagger {
namespace {

using Json = nlohmann::ordered_json;

/// Null where a link takes no time at all: JSON has no infinity.
Json rate_value(const LinkCost& link) {
  if (!(link.seconds_per_byte > 0)) return nullptr;
  return std::round(rate_bits_per_second(link));
}

Json round_value(const RoundPrediction& round, const SlotWindow& slot, std::size_t index) {
  return {
      {"index", index},
      {"iteration", round.iteration.value()},
      {"need_us", to_microseconds(round.need)},
      {"fits", round.fits(slot)},
      {"ready_us", to_microseconds(round.ready)},
      {"push_start_us", to_microseconds(round.push_start)},
      {"push_end_us", to_microseconds(round.push_end)},
      {"reply_end_us", to_microseconds(round.reply_end)},
      {"exposed_us", to_microseconds(round.exposed)}};
}

std::string rounds_text(const Prediction& prediction, const Plan& plan) {
  std::string text = fmt::format(
      "{:>5}  {:>9}  {:>10}  {:>10}  {:>4}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}\n",
      "group",
      "iteration",
      "need_us",
      "window_us",
      "fits",
      "ready_us",
      "push_from",
      "push_until",
      "reply_by",
      "exposed_us");
  for (std::size_t group = 0; group < prediction.rounds.size(); ++group) {
    const RoundPrediction& round = prediction.rounds[group];
    const SlotWindow& slot = plan.groups[group].slot;
    text += fmt::format(
        "{:>5}  {:>9}  {:>10.1f}  {:>10.1f}  {:>4}  {:>10.1f}  {:>10.1f}  {:>10.1f}  {:>10.1f}  "
        "{:>10.1f}\n",
        group,
        round.iteration.value(),
        to_microseconds(round.need),
        to_microseconds(slot.window),
        round.fits(slot) ? "yes" : "no",
        to_microseconds(round.ready),
        to_microseconds(round.push_start),
        to_microseconds(round.push_end),
        to_microseconds(round.reply_end),
        to_microseconds(round.exposed));
  }
  return text;
}

}  // namespace

Json prediction_value(const Outlook& outlook, const Plan& plan) {
  if (!outlook.link || !outlook.prediction || !outlook.smallest) return nullptr;
  const Prediction& prediction = *outlook.prediction;
  Json rounds = Json::array();
  for (std::size_t group = 0; group < prediction.rounds.size(); ++group)
    rounds.push_back(round_value(prediction.rounds[group], plan.groups[group].slot, group));
  const bool hides = outlook.smallest->hides;
  return {
      {"link",
       {{"rate_bits_per_second", rate_value(*outlook.link)},
        {"start_us", to_microseconds(outlook.link->start)}}},
      {"compute_us", to_microseconds(prediction.compute)},
      {"iteration_us", to_microseconds(prediction.iteration)},
      {"exposed_us", to_microseconds(prediction.exposed)},
      {"link_utilisation", prediction.link_utilisation},
      {"hidden", prediction.hidden},
      {"period_smallest", hides ? Json(outlook.smallest->period) : Json(nullptr)},
      {"period_reason", outlook.smallest->reason},
      {"groups", rounds}};
}

std::string prediction_text(const Outlook& outlook, const Plan& plan) {
  if (!outlook.link || !outlook.prediction || !outlook.smallest) {
    return "prediction      none, as the PS's link is not known: give --bandwidth 1gbit, or "
           "link.rate_bits_per_second in the config\n";
  }
  const Prediction& prediction = *outlook.prediction;
  return fmt::format(
      "prediction      iteration {:.1f} us: compute {:.1f} us, exposed communication {:.1f} us\n"
      "link            {:g} Mbit/s, {:g} us before a push; busy {:.0f} % of the time\n"
      "period          {}\n\n{}",
      to_microseconds(prediction.iteration),
      to_microseconds(prediction.compute),
      to_microseconds(prediction.exposed),
      8e-6 / outlook.link->seconds_per_byte,
      to_microseconds(outlook.link->start),
      100.0 * prediction.link_utilisation,
      outlook.smallest->reason,
      rounds_text(prediction, plan));
}

}  // namespace stagger
