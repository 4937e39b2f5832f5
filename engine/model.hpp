#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/architecture.hpp"
#include "net/error.hpp"
#include "net/time.hpp"
#include "tensor/arena.hpp"
#include "tensor/layout.hpp"

namespace stagger {

struct Batch;

/// A minibatch network: layers in forward order, then softmax cross-entropy (mean over the batch).
///
/// For:     the worker (training), the server's evaluation.
/// Owner:   the worker or the evaluator. Pinned; activations are allocated at construction, none in
/// a step. Thread:  the compute thread, one call at a time. Failure: construction throws
/// std::invalid_argument for impossible shapes.
///
/// Use: bind() once (and again after a change of groups), then per step
///     load(batch); forward(all layers); loss(); backward(last .. first), by any runs of layers in
///     order.
class Model : public Architecture {
 public:
  /// Which memory the parameters and gradients are; both outlive the model's use and have
  /// parameters() as layout.
  virtual void bind(Arena& values, Arena& gradients) = 0;

  /// Copies a batch in; 1 <= batch.size <= batch_max. A smaller batch than batch_max is allowed
  /// (evaluation, last batch).
  virtual void load(const Batch& batch) = 0;

  virtual void forward(LayerRange layers) = 0;

  /// Mean cross-entropy and correct predictions of the loaded batch; after the whole forward.
  virtual double loss() = 0;
  virtual std::size_t correct() = 0;

  /// Overwrites (does not add to) the gradients of these layers. Runs of layers come from the last
  /// to the first.
  virtual void backward(LayerRange layers) = 0;

  /// Class scores (logits) of the loaded batch, batch x classes, row major.
  virtual std::span<const float> scores() const = 0;

  /// Rough floating-point operations of one layer's forward per sample: what simulated time is
  /// charged by.
  virtual double forward_flops(std::size_t layer) const = 0;
};

/// What a model is built from.
struct ModelSpec {
  std::string name = "lenet5";                ///< "mlp" or "lenet5"
  std::vector<std::size_t> input{1, 28, 28};  ///< channels, height, width
  std::size_t classes = 10;
  std::vector<std::size_t> hidden{512, 512};  ///< mlp only
};

/// Names of the models there are, for messages.
std::vector<std::string> model_names();

/// Throws std::invalid_argument for an unknown name or impossible shapes.
std::unique_ptr<Model> make_model(const ModelSpec& spec, std::size_t batch_max);

/// PyTorch's default initialisation (Kaiming uniform, bound 1/sqrt(fan_in)), seeded per parameter
/// name: the same numbers whatever the layout.
void initialize(Arena& values, std::uint64_t seed);

/// FNV-1a over names and shapes in order: two models agree iff their hashes do.
std::uint64_t schema_hash(std::span<const ParameterInfo> parameters);

}  // namespace stagger
