#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dnnl.hpp>

#include "engine/layers/dnnl_support.hpp"
#include "tensor/arena.hpp"
#include "tensor/layout.hpp"

namespace stagger {

/// A tensor between two layers, sample by sample. The format is the producer's choice; who wants
/// another reorders.
struct Activation {
  dnnl::memory::desc format;  ///< for the largest batch
  float* values = nullptr;
  float* gradients = nullptr;  ///< nullptr at the model's input, where nobody asks for them
};

/// What a layer is built upon: its place in the model.
struct LayerSite {
  std::string name;  ///< as in a profile: "conv1"
  dnnl::engine engine;
  Activation input;

  /// Extents of the input: batch_max, then channels, height, width or features.
  std::vector<std::size_t> extents() const;
};

/// One step of a network: forward and backward over buffers that are agreed on at construction.
///
/// For:     Sequential.
/// Owner:   the model; pinned, since later layers hold pointers to its output.
/// Thread:  the compute thread, one call at a time.
/// Failure: construction throws std::invalid_argument for impossible shapes.
///
/// Use: bind() the parameters, prepare(batch) before the first step of that batch size (makes and
/// keeps the primitives), then forward(batch) and backward(batch), which allocate nothing.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  Layer(Layer&&) = delete;
  Layer& operator=(Layer&&) = delete;

  const std::string& name() const { return site_.name; }

  const Activation& output() const { return output_; }

  /// Weight first, then bias; without the layer's index, which the model knows. Empty for most
  /// layers.
  const std::vector<ParameterInfo>& parameters() const { return parameters_; }

  /// Which memory the parameters and their gradients are, in the order of parameters().
  void bind(std::vector<std::span<float>> values, std::vector<std::span<float>> gradients);

  void prepare(std::size_t batch);
  void forward(const dnnl::stream& stream, std::size_t batch) const;

  /// Overwrites the gradients of the parameters and of the input, from those of the output.
  void backward(const dnnl::stream& stream, std::size_t batch) const;

  /// Rough floating-point operations of forward, per sample.
  virtual double forward_flops() const = 0;

 protected:
  /// What one pass runs, in order.
  struct Steps {
    std::vector<Operation> forward;
    std::vector<Operation> backward;
  };

  explicit Layer(LayerSite site) : site_(std::move(site)) {}

  /// Makes the primitives for a batch size, over bound parameters.
  virtual Steps plan(std::size_t batch) = 0;

  const LayerSite& site() const { return site_; }

  /// The output is a buffer of the layer's own.
  void allocate_output(const dnnl::memory::desc& format);

  /// The output is the input's memory, seen as `format`.
  void share_output(const dnnl::memory::desc& format);

  void declare_parameter(const std::string& suffix, std::vector<std::size_t> shape);

  float* parameter(std::size_t index) const { return bound_values_.at(index).data(); }

  float* parameter_gradient(std::size_t index) const { return bound_gradients_.at(index).data(); }

  /// Memory objects for `batch` samples.
  dnnl::memory input_values(std::size_t batch) const;
  dnnl::memory input_gradients(std::size_t batch) const;
  dnnl::memory output_values(std::size_t batch) const;
  dnnl::memory output_gradients(std::size_t batch) const;

 private:
  LayerSite site_;
  Activation output_;
  AlignedFloats own_values_;
  AlignedFloats own_gradients_;
  std::vector<ParameterInfo> parameters_;
  std::vector<std::span<float>> bound_values_;
  std::vector<std::span<float>> bound_gradients_;
  std::map<std::size_t, Steps> steps_;
};

}  // namespace stagger
