#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "net/event.hpp"
#include "ps/compute_watch.hpp"
#include "ps/drift_gate.hpp"
#include "ps/link_watch.hpp"
#include "ps/period_tuner.hpp"
#include "ps/server.hpp"

namespace stagger {

/// What is measured while a run goes on, and what of it the plan in force was made for. Internal to
/// Server.
struct Server::Drift {
  /// What an evaluation has found.
  struct Measured {
    LinkCost link;
    double compute = 1.0;  ///< over the profile
  };

  Drift(Executor executor, std::map<WorkerId, Duration> profiled)
      : compute(std::move(profiled)), moved(std::move(executor)) {}

  LinkWatch link;
  ComputeWatch compute;
  PeriodTuner tuner;
  DriftGate gate;
  Event moved;                            ///< a heartbeat has come: watch_drift() looks again
  Iteration next;                         ///< not evaluated before some worker has come so far
  bool follows_period = false;            ///< T is chosen by what is measured …
  bool follows_slots = false;             ///< … and so are the slots
  std::vector<LayerProfile> layers;       ///< the profile …
  std::vector<LayerProfile> slot_layers;  ///< … and that for slots
  Measured planned;                       ///< what the plan in force was made for
};

}  // namespace stagger
