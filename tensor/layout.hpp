#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stagger {

/// A run of layers, in forward order, half open.
struct LayerRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const LayerRange&) const = default;
};

/// One trained tensor of the model.
struct ParameterInfo {
  std::string name;  ///< as in PyTorch's definition of the model: "conv1.weight"
  std::vector<std::size_t> shape;
  std::size_t layer = 0;  ///< index of its layer, forward order

  std::size_t size() const;
  bool operator==(const ParameterInfo&) const = default;
};

/// Where every parameter lies in one allocation, such that a group is one contiguous span.
///
/// Groups are placed in group order (0 = output side), each at a 64-byte boundary with zeros up to
/// the next; inside a group its parameters follow each other in forward order without gaps.
class ArenaLayout {
 public:
  struct Span {
    std::size_t offset = 0;  ///< in floats
    std::size_t size = 0;    ///< in floats, without padding
  };

  ArenaLayout() = default;

  /// REQUIRES: `groups` (index = GroupId, backward order) partition the layers that `parameters`
  /// name.
  ArenaLayout(std::vector<ParameterInfo> parameters, const std::vector<LayerRange>& groups);

  const std::vector<ParameterInfo>& parameters() const { return parameters_; }

  Span parameter(std::size_t index) const { return parameter_spans_.at(index); }

  std::size_t groups() const { return group_spans_.size(); }

  Span group(std::size_t index) const { return group_spans_.at(index); }

  std::size_t size() const { return size_; }  ///< floats of the whole allocation, padding included

 private:
  std::vector<ParameterInfo> parameters_;
  std::vector<Span> parameter_spans_;
  std::vector<Span> group_spans_;
  std::size_t size_ = 0;
};

}  // namespace stagger
