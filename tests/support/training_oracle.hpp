#pragma once

#include "engine/config.hpp"
#include "engine/dataset.hpp"
#include "tensor/arena.hpp"

namespace stagger {

/// The center after a whole run, by one plain loop over iterations and workers: no server, no wire,
/// no coroutines, and the reference kernels. Written from the equations, the due rule and the final
/// round alone.
///
/// `config` names strategy interleaved or easgd, and alpha and beta, or diloco, together or with
/// phases residue. Momentum, weight decay and a
/// constant learning rate.
Arena train_by_the_equations(const Config& config, const Dataset& data);

}  // namespace stagger
