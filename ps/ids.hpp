#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

/// Strong types for everything that is counted: an iteration cannot be passed for a group.
namespace stagger {

/// A number of one kind. Compares, hashes and prints; arithmetic is spelled out with value().
template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;

  constexpr explicit Id(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  constexpr Id next() const { return Id(static_cast<Rep>(value_ + 1)); }

  constexpr auto operator<=>(const Id&) const = default;

  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << +id.value_; }

 private:
  Rep value_{};
};

/// A worker's rank, 0..K-1.
using WorkerId = Id<struct WorkerTag, std::uint32_t>;
/// 0 is the output side: the order in which backward finishes groups.
using GroupId = Id<struct GroupTag, std::uint32_t>;
/// One optimiser step; counted from 1. 0 means "none yet".
using Iteration = Id<struct IterationTag, std::uint64_t>;
/// A plan's version; the first plan has 1.
using PlanVersion = Id<struct PlanVersionTag, std::uint32_t>;
/// Tells a rejoined worker from its former self.
using Incarnation = Id<struct IncarnationTag, std::uint64_t>;

/// The exchange of a group in an iteration in which it is due, over all workers.
struct RoundId {
  GroupId group;
  Iteration iteration;

  auto operator<=>(const RoundId&) const = default;
};

}  // namespace stagger

template <class Tag, class Rep>
struct std::hash<stagger::Id<Tag, Rep>> {
  std::size_t operator()(stagger::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
