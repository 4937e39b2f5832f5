#pragma once

#include <cstddef>

#include "engine/dataset.hpp"
#include "engine/model.hpp"
#include "tensor/arena.hpp"

namespace stagger {

struct Evaluation {
  double accuracy = 0.0;  ///< share of correct predictions
  double loss = 0.0;      ///< mean cross-entropy per sample
  std::size_t samples = 0;
};

/// The whole data set through the model with these parameters, in batches of at most the model's
/// batch_max.
Evaluation evaluate(Model& model, std::size_t batch_max, const Arena& values, const Dataset& data);

}  // namespace stagger
