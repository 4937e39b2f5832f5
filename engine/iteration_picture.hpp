#pragma once

#include <span>
#include <string>

#include "ps/timeline.hpp"

/// One iteration as a picture: workers down, time across. Pure.
namespace stagger {

/// For a terminal: two rows a worker, what it computes and what it does on the link. At most
/// `workers_max` workers are drawn, spread over all.
std::string picture_text(std::span<const Timeline> workers, std::size_t workers_max = 16);

/// The same as an SVG document, all workers in it.
std::string picture_svg(std::span<const Timeline> workers);

}  // namespace stagger
