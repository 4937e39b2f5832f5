#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ps/policy.hpp"

/// In which iteration of a period each group takes part. Pure.
namespace stagger {

/// Per group (0 is the output side) its phase: it is due in iterations j with j mod T == phase.
///
///   residue     (N - g) mod T: neighbours in different iterations
///   contiguous  T runs of neighbours, as many groups in each as the numbers allow; the run of the
///               input side comes first
///   level       equal bytes per iteration: the largest group first, each into the iteration with
///               the least bytes so far; of equal ones into the one whose groups are furthest away.
///               Groups of equal size come out as under residue.
///   together    0: all in the last iteration of a period
///
/// With T > N iterations are left without groups. REQUIRES period >= 1.
/// ENSURES each phase is below the period; the result depends on the arguments alone.
std::vector<std::uint32_t> assign_phases(
    PhaseRule rule, std::span<const std::uint64_t> bytes, std::uint32_t period);

}  // namespace stagger
