#include "engine/layer_times.hpp"

#include <algorithm>
#include <utility>

#include "engine/model.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

/// The lower of two middle ones.
Duration median(std::vector<Duration> durations) {
  CHECK(!durations.empty());
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>((durations.size() - 1) / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

}  // namespace

LayerTimes::LayerTimes(Host host, Backend& backend)
    : host_(std::move(host)),
      backend_(backend),
      forward_(backend.layers()),
      backward_(backend.layers()) {}

Task<void> LayerTimes::measure(std::uint64_t repeats, WorkerId rank) {
  CHECK(repeats > 0);
  Arena scratch(ArenaLayout(backend_.parameters(), {{0, backend_.layers()}}));
  Arena scratch_gradients(scratch.layout());
  initialize(scratch, host_.seed);
  backend_.bind(scratch, scratch_gradients);
  for (std::uint64_t repeat = 0; repeat < repeats; ++repeat)
    co_await run_once(rank);
  for (std::size_t layer = 0; layer < backend_.layers(); ++layer) {
    profile_.forward.push_back(median(forward_[layer]));
    profile_.backward.push_back(median(backward_[layer]));
  }
}

Task<void> LayerTimes::run_once(WorkerId rank) {
  std::function<void()> load = [this, rank] {
    backend_.load(Iteration(1), rank);
  };
  co_await timed(std::move(load), Duration{0});
  for (std::size_t layer = 0; layer < backend_.layers(); ++layer) {
    const LayerRange range{layer, layer + 1};
    std::function<void()> work = [this, range] {
      backend_.forward(range);
    };
    forward_[layer].push_back(co_await timed(std::move(work), backend_.forward_time(range)));
  }
  std::function<void()> loss = [this] {
    backend_.loss();
  };
  co_await timed(std::move(loss), Duration{0});
  for (std::size_t layer = backend_.layers(); layer-- > 0;) {
    const LayerRange range{layer, layer + 1};
    std::function<void()> work = [this, range] {
      backend_.backward(range);
    };
    backward_[layer].push_back(co_await timed(std::move(work), backend_.backward_time(range)));
  }
}

Task<Duration> LayerTimes::timed(std::function<void()> work, Duration nominal) {
  const TimePoint began = host_.clock.now();
  co_await host_.compute.run(std::move(work), nominal);
  co_return host_.clock.now() - began;
}

}  // namespace stagger
