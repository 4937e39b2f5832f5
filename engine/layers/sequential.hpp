#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "engine/layers/layer.hpp"
#include "engine/layers/softmax_cross_entropy.hpp"
#include "engine/model.hpp"

namespace stagger {

/// Layers in a row, then softmax cross-entropy. The one implementation of Model; see there.
///
/// Use: construct, add() every layer, finish(); from then on it is a Model.
class Sequential final : public Model {
 public:
  /// `input`: channels, height, width.
  Sequential(std::string name, const std::vector<std::size_t>& input, std::size_t batch_max);

  /// Appends a layer on top of the last one: add<Linear>("fc1", 120).
  template <class LayerType, class... Options>
  void add(const std::string& layer_name, Options... options) {
    layers_.push_back(std::make_unique<LayerType>(
        LayerSite{.name = layer_name, .engine = engine_, .input = last_output()}, options...));
    append_parameters();
  }

  /// REQUIRES a flat output. Its width is the number of classes.
  void finish();

  const std::string& name() const override { return name_; }

  const std::vector<std::string>& layer_names() const override { return layer_names_; }

  const std::vector<ParameterInfo>& parameters() const override { return parameters_; }

  void bind(Arena& values, Arena& gradients) override;
  void load(const Batch& batch) override;
  void forward(LayerRange layers) override;
  double loss() override;
  std::size_t correct() override;
  void backward(LayerRange layers) override;
  std::span<const float> scores() const override;
  double forward_flops(std::size_t layer) const override;

 private:
  Activation last_output() const;
  void append_parameters();

  std::string name_;
  std::size_t batch_max_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Activation input_;
  AlignedFloats input_values_;
  std::size_t sample_size_ = 1;
  std::size_t classes_ = 0;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::string> layer_names_;
  std::vector<ParameterInfo> parameters_;
  std::vector<std::int32_t> labels_;
  std::size_t batch_ = 0;  ///< samples loaded; 0 before the first load
  LossResult result_;
  bool bound_ = false;
};

}  // namespace stagger
