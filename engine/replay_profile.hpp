#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/architecture.hpp"
#include "net/storage.hpp"
#include "ps/grouping.hpp"

/// Layer times and sizes that were measured or computed elsewhere. Pure but for reading files.
namespace stagger {

/// The profiles that are part of the program: configs/profiles/*.csv.
std::vector<std::string> shipped_profile_names();

/// A shipped profile by its name, or a CSV file by its path. Throws DataError with one line: no
/// such profile, with the names there are, or what is wrong with the file and where.
std::vector<LayerProfile> load_profile(const Storage& storage, const std::string& name);

/// How a profile is changed before it is replayed.
struct ReplayScale {
  double time = 1.0;
  double bytes = 1.0;
  std::optional<double> backward_ratio;  ///< backward = ratio * forward; none: as the profile says
};

/// The profile in other sizes and times. A layer with parameters keeps one at least; parameters are
/// the profile's bytes as float32. Throws DataError, with `source`, for what no run can be made of:
/// too many layers, parameters or hours, names twice or unreadable.
std::vector<LayerProfile> scaled_profile(
    std::vector<LayerProfile> profile, const ReplayScale& scale, const std::string& source);

/// A profile's layers, each with one vector "<layer>.weight" of its parameters.
class ReplayArchitecture final : public Architecture {
 public:
  ReplayArchitecture(std::string name, const std::vector<LayerProfile>& profile);

  const std::string& name() const override { return name_; }

  const std::vector<std::string>& layer_names() const override { return layer_names_; }

  const std::vector<ParameterInfo>& parameters() const override { return parameters_; }

 private:
  std::string name_;
  std::vector<std::string> layer_names_;
  std::vector<ParameterInfo> parameters_;
};

}  // namespace stagger
