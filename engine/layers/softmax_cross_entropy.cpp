#include "engine/layers/softmax_cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "observability/check.hpp"

namespace stagger {

LossResult softmax_cross_entropy(
    std::span<const float> scores,
    std::span<const std::int32_t> labels,
    std::size_t classes,
    std::span<float> gradients) {
  CHECK(!labels.empty() && classes > 0);
  CHECK_EQ(scores.size(), labels.size() * classes);
  CHECK_EQ(gradients.size(), scores.size());
  const float batch = static_cast<float>(labels.size());
  LossResult result;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const std::span<const float> row = scores.subspan(sample * classes, classes);
    const std::span<float> out = gradients.subspan(sample * classes, classes);
    CHECK(labels[sample] >= 0, "label", labels[sample]);
    const auto label = static_cast<std::size_t>(labels[sample]);
    CHECK_LT(label, classes);

    const auto largest = std::max_element(row.begin(), row.end());
    float total = 0.0F;
    for (std::size_t i = 0; i < classes; ++i) {
      out[i] = std::exp(row[i] - *largest);
      total += out[i];
    }
    for (float& value : out) {
      value /= total * batch;
    }
    out[label] -= 1.0F / batch;
    result.loss +=
        std::log(static_cast<double>(total)) - static_cast<double>(row[label] - *largest);
    if (largest == row.begin() + static_cast<std::ptrdiff_t>(label)) ++result.correct;
  }
  result.loss /= static_cast<double>(labels.size());
  return result;
}

}  // namespace stagger
