#include "engine/evaluation.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace stagger {

Evaluation evaluate(Model& model, std::size_t batch_max, const Arena& values, const Dataset& data) {
  Arena own(values.layout());
  own.assign(values);
  Arena gradients(values.layout());
  model.bind(own, gradients);
  const LayerRange all{0, model.layer_names().size()};
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);

  Evaluation result;
  std::size_t correct = 0;
  Batch batch;
  for (std::span<const std::uint32_t> rest(samples); !rest.empty();) {
    const auto part = rest.first(std::min(batch_max, rest.size()));
    gather(data, part, batch);
    model.load(batch);
    model.forward(all);
    result.loss += model.loss() * static_cast<double>(part.size());
    correct += model.correct();
    rest = rest.subspan(part.size());
  }
  result.samples = data.size();
  if (result.samples > 0) {
    result.loss /= static_cast<double>(result.samples);
    result.accuracy = static_cast<double>(correct) / static_cast<double>(result.samples);
  }
  return result;
}

}  // namespace stagger
