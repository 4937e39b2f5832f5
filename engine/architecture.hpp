#pragma once

#include <string>
#include <vector>

#include "tensor/layout.hpp"

namespace stagger {

/// What a job keeps together: layers in forward order, and their parameters. The same at both ends
/// of the wire.
///
/// For:     job.hpp. A Model is one that computes, too.
class Architecture {
 public:
  virtual ~Architecture() = default;

  virtual const std::string& name() const = 0;

  /// Layers including those without parameters; names as in a profile.
  virtual const std::vector<std::string>& layer_names() const = 0;

  /// In forward order. Names and shapes as in PyTorch's definition ("fc1.weight" of shape out x
  /// in).
  virtual const std::vector<ParameterInfo>& parameters() const = 0;
};

}  // namespace stagger
