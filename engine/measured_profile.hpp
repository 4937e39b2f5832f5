#pragma once

#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/role.hpp"
#include "ps/grouping.hpp"

namespace stagger {

/// The layers of the config's model with their times on this machine, one worker alone; of a
/// replay, what it replays. Throws DataError.
///
/// For:     `stagger plan` and `stagger profile`, which see the same numbers. Runs the role's loop.
std::vector<LayerProfile> profile_of(Role& role, const Config& config);

/// `name,params,bytes,t_fwd_us,t_bwd_us` lines, as parse_profile_csv reads them.
std::string profile_csv(const std::vector<LayerProfile>& layers);

}  // namespace stagger
