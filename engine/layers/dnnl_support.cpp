#include "engine/layers/dnnl_support.hpp"

#include <cstddef>
#include <utility>

#include "observability/check.hpp"

// OpenMP's own declaration; its header comes with each compiler, and clang's is a package apart.
extern "C" void omp_set_num_threads(int threads);

namespace stagger {

void use_one_thread() {
  omp_set_num_threads(1);
}

dnnl::memory::desc narrowed(const dnnl::memory::desc& desc, std::size_t batch) {
  dnnl::memory::dims extents = desc.dims();
  CHECK(!extents.empty());
  const auto wanted = static_cast<dnnl::memory::dim>(batch);
  CHECK(wanted >= 1 && wanted <= extents[0], "batch", batch, "of at most", extents[0]);
  if (wanted == extents[0]) return desc;
  extents[0] = wanted;
  return desc.submemory_desc(extents, dnnl::memory::dims(extents.size(), 0));
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::size_t floats_of(const dnnl::memory::desc& desc) {
  return (desc.get_size() + sizeof(float) - 1) / sizeof(float);
}

Operation::Operation(
    const dnnl::engine& engine,
    const dnnl::primitive& primitive,
    const dnnl::memory::desc& scratchpad,
    Arguments arguments)
    : primitive_(primitive), memories_(std::move(arguments)) {
  if (scratchpad.get_size() > 0) {
    memories_.emplace_back(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad, engine));
  }
  arguments_.reserve(memories_.size());
  for (const auto& [role, memory] : memories_) {
    arguments_.push_back({.arg = role, .memory = memory.get()});
  }
}

void Operation::run(const dnnl::stream& stream) const {
  // The C++ wrapper's execute() takes a map and allocates; the C entry takes what is ready.
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data());
  CHECK(status == dnnl_success, "oneDNN refused a planned operation", static_cast<int>(status));
}

Operation reorder_operation(const dnnl::memory& source, const dnnl::memory& target) {
  const dnnl::engine engine = source.get_engine();
  const dnnl::reorder::primitive_desc description(
      engine, source.get_desc(), engine, target.get_desc(), own_scratchpad());
  return Operation(
      engine,
      dnnl::reorder(description),
      description.scratchpad_desc(),
      {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

}  // namespace stagger
