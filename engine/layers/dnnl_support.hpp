#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <dnnl.hpp>

/// The little of oneDNN that all layers share. Only engine/layers includes this.
namespace stagger {

/// Keeps oneDNN (and anything else on OpenMP) to the calling thread. Sums are then taken in one
/// order, so that results are the same from run to run. Cheap; called before primitives are made
/// and before they run.
void use_one_thread();

/// `desc` of the largest batch, narrowed to `batch` samples: the same strides, so both describe one
/// buffer.
dnnl::memory::desc narrowed(const dnnl::memory::desc& desc, std::size_t batch);

/// Attributes of every primitive here: scratch memory is ours (the library's own is tied to the
/// creating thread).
dnnl::primitive_attr own_scratchpad();

/// Floats that a buffer of this format needs.
std::size_t floats_of(const dnnl::memory::desc& desc);

/// One primitive with its memory: ready to run again and again without an allocation of ours.
///
/// Owner:   the layer that planned it. The buffers behind the memory objects outlive it.
/// Failure: dnnl::error from run() is a bug: shapes were agreed on when the primitive was made.
class Operation {
 public:
  using Arguments = std::vector<std::pair<int, dnnl::memory>>;

  /// `scratchpad` as the primitive's description says.
  Operation(
      const dnnl::engine& engine,
      const dnnl::primitive& primitive,
      const dnnl::memory::desc& scratchpad,
      Arguments arguments);

  void run(const dnnl::stream& stream) const;

 private:
  dnnl::primitive primitive_;
  Arguments memories_;  ///< kept alive for `arguments_`
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Copies between two formats.
Operation reorder_operation(const dnnl::memory& source, const dnnl::memory& target);

}  // namespace stagger
