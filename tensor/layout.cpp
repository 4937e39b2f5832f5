#include "tensor/layout.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t floats_per_line = 64 / sizeof(float);

std::size_t next_line(std::size_t offset) {
  return (offset + floats_per_line - 1) / floats_per_line * floats_per_line;
}

/// Groups come in backward order: the first ends with the last layer, the last begins with layer 0.
void check_partition(const std::vector<LayerRange>& groups) {
  CHECK(!groups.empty(), "a layout without groups");
  CHECK_EQ(groups.back().begin, 0U);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    CHECK(groups[group].begin < groups[group].end, "empty group", group);
    if (group > 0) CHECK_EQ(groups[group].end, groups[group - 1].begin);
  }
}

}  // namespace

std::size_t ParameterInfo::size() const {
  std::size_t product = 1;
  for (const std::size_t extent : shape) {
    product *= extent;
  }
  return product;
}

ArenaLayout::ArenaLayout(
    std::vector<ParameterInfo> parameters, const std::vector<LayerRange>& groups)
    : parameters_(std::move(parameters)), parameter_spans_(parameters_.size()) {
  check_partition(groups);
  std::size_t placed = 0;
  for (const LayerRange& group : groups) {
    const std::size_t begin = next_line(size_);
    std::size_t offset = begin;
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      const std::size_t layer = parameters_[index].layer;
      if (layer < group.begin || layer >= group.end) continue;
      parameter_spans_[index] = {.offset = offset, .size = parameters_[index].size()};
      offset += parameter_spans_[index].size;
      ++placed;
    }
    group_spans_.push_back({.offset = begin, .size = offset - begin});
    size_ = next_line(offset);
  }
  CHECK_EQ(placed, parameters_.size());
}

}  // namespace stagger
