#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/event.hpp"
#include "net/host.hpp"
#include "net/scope.hpp"
#include "observability/catalog.hpp"
#include "observability/histogram.hpp"
#include "ps/aggregator.hpp"
#include "ps/agreement.hpp"
#include "ps/center.hpp"
#include "ps/join_line.hpp"
#include "ps/membership.hpp"
#include "ps/period_choice.hpp"
#include "ps/planner.hpp"
#include "ps/protocol.hpp"
#include "ps/rhythm.hpp"
#include "ps/timeouts.hpp"
#include "ps/turns.hpp"

namespace stagger {

class Session;

/// A run that cannot go on: members missing at the start, every worker lost, a port in use, a link
/// that is needed and could not be measured.
struct ServerFailure : std::runtime_error {
  enum class Kind : std::uint8_t { members_missing, workers_lost, listen_failed, link_unknown };

  ServerFailure(Kind what_kind, const std::string& what)
      : std::runtime_error(what), kind(what_kind) {}

  Kind kind;
};

struct ServerOptions {
  std::string job;
  Endpoint listen;
  std::vector<LayerProfile> layers;  ///< names and sizes; times are measured by the workers
  std::uint64_t schema_hash = 0;
  std::string settings;  ///< the lines of the config that change results
  PolicyRequest policy;  ///< what the user asked for; its `workers` is the world size
  GroupingOptions grouping;
  /// T is not the policy's, but what hides communication on the link: chosen at the start, and
  /// again when what is measured drifts. Strategy bsp: 1.
  bool period_auto = false;
  std::optional<LinkCost> link = std::nullopt;  ///< given; none: measured at the start, if wanted
  bool link_wanted = false;  ///< by the planner, by period_auto or by slot rule `measured`
  double slot_guard = 0.0;   ///< of slot rule `measured`, for a link that is measured
  Admission admission = Admission::slots;
  SlotOptions slots;
  Turns::Options turns;
  Iteration last_iteration{1};
  bool final_round = true;
  std::size_t chunk_bytes = std::size_t{1} << 20;
  std::size_t early_bytes_max = std::size_t{256} << 20;
  std::uint32_t sessions_extra_max = 64;           ///< connections beyond one per worker
  SgdConstants optimizer;                          ///< bsp
  std::function<double(Iteration)> learning_rate;  ///< bsp
  Timeouts timeouts;
};

/// What is known of a worker, for the API and the report.
struct WorkerStatus {
  WorkerId rank;
  Membership::Member member;
  Heartbeat progress;
};

struct ServerStatus {
  bool started = false;
  Iteration iteration;  ///< the furthest that a worker has finished
  Iteration last_iteration;
  double loss = 0.0;  ///< mean over the workers' last
  std::uint64_t samples = 0;
  std::uint32_t pushes_in_flight = 0;
  std::uint32_t pushes_in_flight_max = 0;
  std::uint64_t rounds_closed = 0;
  std::vector<WorkerStatus> workers;
};

/// What one worker's push costs, as plans at the start went by it.
struct KnownLink {
  LinkCost cost;
  bool measured = false;  ///< else given
};

/// What a finished run leaves, beyond the center.
struct ServerTotals {
  std::uint64_t bytes_pushed = 0;  ///< payload that workers say they pushed
  std::uint64_t bytes_pulled = 0;
  double exposed_seconds = 0.0;  ///< summed over workers
  double compute_seconds = 0.0;
  QuantileSketch lateness;
  QuantileSketch push;             ///< first byte to the PS's acknowledgement of the last
  QuantileSketch ready_to_done;    ///< group ready to that acknowledgement
  QuantileSketch iteration;        ///< durations, after iteration 1
  double iteration_seconds = 0.0;  ///< their sum
  Duration clock_uncertainty{0};   ///< the largest that a worker knew the PS's clock with
  TimePoint started_at;
  TimePoint ended_at;
};

/// The parameter server: accepts workers, makes the plan, closes rounds, agrees on changes, ends
/// with the last worker.
///
/// For:     `stagger ps`, and a node of the simulator.
/// Owner:   the command; the Host and the metrics outlive it.
/// Thread:  the loop; every member.
/// Cancel:  run() cancelled: sessions are closed, then operation_aborted.
/// Failure: run() throws ServerFailure. A worker's failure ends its session only.
///
/// Tasks (all in one scope): accept_workers, serve one session per connection, watch_members,
/// watch_turns, coordinate; watch_drift where what is measured may change the plan.
class Server {
 public:
  Server(
      Host host,
      ServerOptions options,
      const Arena& initial,
      ServerMetrics& metrics,
      WorkerMetrics& workers);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds. Fails as Network::listen. The local endpoint is known afterwards.
  Result<Endpoint> listen();

  /// From the first worker to the last. REQUIRES listen().
  Task<void> run();

  /// A new period from an iteration that all workers agree on; that iteration, or why not. From
  /// then on it is the caller's: period_auto is over.
  Task<Result<Iteration>> change_period(std::uint32_t period, std::string requester);

  /// All workers end after an iteration they agree on, with the final round and a farewell.
  Task<Result<Iteration>> stop(std::string requester);

  /// Ends run() without the workers: their connections are closed. For a stop that took too long.
  void abandon();

  ServerStatus status() const;

  const ServerTotals& totals() const { return totals_; }

  /// Once started, where T was to be chosen: which and why.
  const std::optional<PeriodChoice>& period_choice() const { return period_choice_; }

  /// Whether T still follows what is measured.
  bool period_follows() const;

  /// None: not known, and not needed.
  const std::optional<KnownLink>& link() const { return link_; }

  const PlanHistory& plans() const { return plans_; }

  const ServerOptions& options() const { return options_; }

  /// The center as it is now; the initial values before the plan is made.
  Arena center() const;

  // ---- for Session ----
  const Host& host() const { return host_; }

  Result<WorkerId> admit(const Hello& hello, const std::string& address);

  bool wants_profile() const { return plans_.empty(); }

  Incarnation incarnation(WorkerId worker) const { return membership_.member(worker).incarnation; }

  void attach(WorkerId worker, Session& session);
  void detach(WorkerId worker, Session& session, const std::string& reason);
  void profiled(WorkerId worker, const Profile& profile);
  void wants_to_rejoin(WorkerId worker);
  void heard(WorkerId worker, Incarnation incarnation);
  void progressed(WorkerId worker, const Heartbeat& progress);
  void promised(WorkerId worker, const Promise& promise);
  void farewell(WorkerId worker, const Farewell& farewell);

  void refused(RefusalReason reason) { metrics_.refused(reason); }

  /// A group of the worker waits for a turn. Refused: no such round of the plan.
  Result<void> announced(WorkerId worker, const Announce& announce);

  /// The worker's chunk waits for others to send first, and all that it sends behind it: it has no
  /// turn meanwhile. Then it has been placed.
  void held(WorkerId worker);
  void placed(WorkerId worker);

  /// A chunk of the center has been handed to the worker's connection.
  void reply_sent(WorkerId worker, ChunkId id);

  /// A piece of the joining center has been handed to the worker's connection.
  void joining_sent(WorkerId worker);

  /// The push's first byte waits to be read. False: not before the session is told by retry().
  bool push_may_begin(WorkerId worker, RoundId round);
  void push_began(WorkerId worker, RoundId round, bool waited);
  void push_ended(WorkerId worker, RoundId round);
  void push_received(WorkerId worker, ChunkId id, std::size_t bytes);
  void skipped_nonfinite(WorkerId worker, ChunkId id);
  void probe_answered(std::uint32_t number);

  Aggregator& aggregator() { return *aggregator_; }

  Center& center_chunks() { return *center_; }

  bool started() const { return aggregator_.has_value(); }

  void aggregator_moved();

 private:
  struct Change;
  struct Drift;

  Task<void> accept_workers();
  Task<void> serve(std::shared_ptr<Session> session);
  Task<void> watch_members();
  Task<void> watch_turns();
  Task<void> coordinate();
  Task<void> await_members();
  Task<void> await_link();
  Task<void> measure_link();
  Task<std::optional<LinkCost>> probe_worker(WorkerId worker);
  Task<std::optional<Duration>> time_probe(WorkerId worker, std::uint64_t bytes);
  Task<void> watch_drift();
  Task<void> follow_drift();
  Task<void> carry_out(Change& change);
  Task<Iteration> agree();

  void start();
  void use_link(const LinkCost& link);
  void show_link(const LinkCost& link);
  void begin_drift();
  void plan_by(const LinkCost& link, double compute);
  std::shared_ptr<Change> due_change(const LinkCost& link, double compute);
  Result<void> check_period(std::uint32_t period) const;
  void stop_following(const std::string& requester);
  void choose_period_at_start();
  void warn_of_waits();
  Result<Iteration> apply(Change& change, Iteration agreed);
  Result<Plan> next_plan(const Change& change, Iteration agreed) const;
  Task<Result<Iteration>> submit(std::shared_ptr<Change> change);
  void begin_worker(WorkerId worker, Iteration first);
  void send_joining();
  Result<Iteration> rejoin(WorkerId worker, Iteration first);
  void declare_gone(WorkerId worker);
  void hand_out_turns();
  void hand_out_replies();
  void publish_rhythm();
  void forget_turns(WorkerId worker);
  TurnRank turn_rank(WorkerId worker, RoundId round) const;
  void send_closed(ChunkId id);
  void send_reply(WorkerId worker, ChunkId id);
  void broadcast(const Message& message);
  std::string missing_text() const;

  Host host_;
  ServerOptions options_;
  ServerMetrics& metrics_;
  WorkerMetrics& worker_metrics_;
  Arena initial_;
  std::unique_ptr<Listener> listener_;
  TaskScope scope_;

  Membership membership_;
  Agreement agreement_;
  PlanHistory plans_;
  std::optional<Center> center_;
  std::optional<Aggregator> aggregator_;
  std::map<WorkerId, Session*> sessions_;
  std::set<std::shared_ptr<Session>> connections_;
  std::map<WorkerId, Profile> profiles_;
  std::map<WorkerId, Heartbeat> progress_;

  Event changed_;  ///< membership, promises or queued changes moved: coordinate() looks again
  std::deque<std::shared_ptr<Change>> changes_;

  struct InFlight {
    WorkerId worker;
    RoundId round;
    TimePoint began_at;
  };

  std::list<InFlight> in_flight_;
  std::uint32_t in_flight_max_ = 0;
  std::map<GroupId, TimePoint> round_opened_at_;
  Turns push_turns_;
  Turns reply_turns_;
  JoinLine joins_;
  std::set<TurnId> arrived_;  ///< pushes that are not read yet
  RhythmFinder rhythm_;
  Event turns_moved_;  ///< watch_turns() looks again
  WorkerId last_pusher_;
  Iteration reached_;  ///< the furthest that pushes show
  bool abandoned_ = false;
  bool stop_wanted_ = false;  ///< before the start; later a stop is a change
  ServerTotals totals_;
  std::optional<PeriodChoice> period_choice_;

  struct AwaitedProbe {
    std::uint32_t number = 0;
    std::optional<TimePoint> answered_at;
  };

  AwaitedProbe probe_;
  std::optional<KnownLink> link_;
  std::unique_ptr<Drift> drift_;  ///< where what is measured may change the plan
};

}  // namespace stagger
