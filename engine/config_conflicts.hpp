#pragma once

#include <optional>
#include <string>

#include "engine/config.hpp"

namespace stagger {

/// What no single key can tell. The text begins with "table.key: "; none: all is well. Pure.
std::optional<std::string> find_config_conflict(const Config& config);

/// `table.key: "value"` of what goes by the cost of the link, whether that is given or not. Pure.
std::optional<std::string> find_link_need(const Config& config);

}  // namespace stagger
