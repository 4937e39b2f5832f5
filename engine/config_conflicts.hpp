#pragma once

#include <optional>
#include <string>

#include "engine/config.hpp"

namespace stagger {

/// What no single key can tell. The text begins with "table.key: "; none: all is well. Pure.
std::optional<std::string> find_config_conflict(const Config& config);

}  // namespace stagger
