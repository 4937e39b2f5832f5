#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/error.hpp"
#include "net/event.hpp"
#include "ps/ids.hpp"
#include "ps/membership.hpp"
#include "ps/server.hpp"

namespace stagger {

/// Something that all workers must agree on before it takes effect. Internal to Server.
struct Server::Change {
  enum class Kind : std::uint8_t { period, slots, stop, rejoin };

  static std::string_view name(Kind kind);

  Change(Executor executor, Kind what) : kind(what), done(std::move(executor)) {}

  Kind kind;
  std::uint32_t period = 0;  ///< of a period change; of new slots, the present one is kept
  WorkerId worker;           ///< of a rejoin
  std::string requester;     ///< who asked, for the log
  Event done;
  std::optional<Result<Iteration>> outcome;
};

/// Aggregator's question to the membership, as a value.
struct AbsentFrom {
  const Membership& membership;

  bool operator()(WorkerId worker, Iteration iteration) const {
    return membership.absent(worker, iteration);
  }
};

}  // namespace stagger
