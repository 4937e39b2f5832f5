#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stagger {

struct LossResult {
  double loss = 0.0;        ///< mean over the batch of -log softmax(scores)[label]
  std::size_t correct = 0;  ///< samples whose label has the largest score (the first of equals)
};

/// Loss of `labels.size()` rows of `scores`, and its gradient (softmax - one hot) / batch.
/// REQUIRES both spans of size batch*classes, labels below classes. No allocation.
LossResult softmax_cross_entropy(
    std::span<const float> scores,
    std::span<const std::int32_t> labels,
    std::size_t classes,
    std::span<float> gradients);

}  // namespace stagger
