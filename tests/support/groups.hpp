#pragma once

#include <cstddef>
#include <vector>

#include "tensor/layout.hpp"

namespace stagger {

/// Groups in backward order of a model with so many layers, cut before the given layers:
/// groups_of(12, {9, 4}) is {9..12}, {4..9}, {0..4}.
inline std::vector<LayerRange> groups_of(
    std::size_t layers, const std::vector<std::size_t>& cuts = {}) {
  std::vector<LayerRange> groups;
  std::size_t end = layers;
  for (const std::size_t cut : cuts) {
    groups.push_back({.begin = cut, .end = end});
    end = cut;
  }
  groups.push_back({.begin = 0, .end = end});
  return groups;
}

}  // namespace stagger
