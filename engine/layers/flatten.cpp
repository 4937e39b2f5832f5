#include "engine/layers/flatten.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace stagger {

Flatten::Flatten(LayerSite place) : Layer(std::move(place)), view_(false) {
  const dnnl::memory::dims extents = site().input.format.dims();
  if (extents.size() != 4) throw std::invalid_argument(name() + ": input is not an image");
  image_ = {extents, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nchw};
  view_ = image_ == site().input.format;
  const dnnl::memory::desc rows(
      {extents[0], extents[1] * extents[2] * extents[3]},
      dnnl::memory::data_type::f32,
      dnnl::memory::format_tag::ab);
  if (view_) {
    share_output(rows);
  } else {
    allocate_output(rows);
  }
}

Layer::Steps Flatten::plan(std::size_t batch) {
  Steps steps;
  if (view_) return steps;
  const dnnl::memory::desc image = narrowed(image_, batch);
  const dnnl::memory values(image, site().engine, output().values);
  steps.forward.push_back(reorder_operation(input_values(batch), values));
  if (site().input.gradients == nullptr) return steps;
  const dnnl::memory gradients(image, site().engine, output().gradients);
  steps.backward.push_back(reorder_operation(gradients, input_gradients(batch)));
  return steps;
}

}  // namespace stagger
