#include <array>
#include <cmath>
#include <utility>

#include <capnp/message.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include "net/protocol.capnp.h"
#include "ps/protocol.hpp"

// Frames into messages: every limit is checked before anything is made from a number.
namespace stagger {

namespace {

constexpr std::uint64_t text_bytes_max = 65536;
constexpr std::size_t layers_max = 65536;

struct Malformed {
  std::string what;
};

std::string read_text(capnp::Text::Reader text, const char* field) {
  if (text.size() > text_bytes_max) {
    throw Malformed{fmt::format("{} has {} bytes, at most {}", field, text.size(), text_bytes_max)};
  }
  return {text.begin(), text.size()};
}

template <class Enum>
Enum read_enum(std::uint8_t value, Enum last, const char* field) {
  if (value > static_cast<std::uint8_t>(last)) {
    throw Malformed{fmt::format("{} has no value {}", field, value)};
  }
  return static_cast<Enum>(value);
}

ChunkId read(wire::ChunkId::Reader in) {
  return {{GroupId(in.getGroup()), Iteration(in.getIteration())}, in.getChunk()};
}

RoundId read(wire::Round::Reader in) {
  return {.group = GroupId(in.getGroup()), .iteration = Iteration(in.getIteration())};
}

std::vector<Duration> read_durations(
    capnp::List<std::int64_t>::Reader in, const char* field, std::size_t count_max) {
  if (in.size() > count_max) {
    throw Malformed{fmt::format("{} has {} entries, at most {}", field, in.size(), count_max)};
  }
  std::vector<Duration> durations;
  durations.reserve(in.size());
  for (const auto ns : in)
    durations.emplace_back(ns);
  return durations;
}

PsTime read_ps_time(std::int64_t ns) {
  return PsTime{Duration{ns}};
}

Heartbeat read(wire::Heartbeat::Reader in) {
  Heartbeat heartbeat{
      .iteration = Iteration(in.getIteration()),
      .samples = in.getSamples(),
      .loss = in.getLoss(),
      .exposed = Duration{in.getExposedNs()},
      .compute = Duration{in.getComputeNs()},
      .iterations = read_durations(in.getIterationNs(), "iterationNs", Heartbeat::samples_max),
      .lateness = read_durations(in.getLatenessNs(), "latenessNs", Heartbeat::samples_max),
      .overrun = read_durations(in.getOverrunNs(), "overrunNs", Heartbeat::samples_max),
      .round_trip = Duration{in.getRoundTripNs()},
      .retransmissions = in.getRetransmissions()};
  if (in.hasClock()) {
    heartbeat.clock = ClockReading{
        .offset = Duration{in.getClock().getOffsetNs()},
        .uncertainty = Duration{in.getClock().getUncertaintyNs()}};
  }
  if (in.hasBackward()) {
    heartbeat.backward = BackwardStart{
        .iteration = Iteration(in.getBackward().getIteration()),
        .at = read_ps_time(in.getBackward().getAtNs())};
  }
  return heartbeat;
}

/// What a worker adds up from it must stay a time.
Rhythm read(wire::Rhythm::Reader in) {
  constexpr std::int64_t ns_max = std::int64_t{1} << 60;  // 36 years
  const Rhythm rhythm{
      .iteration = Iteration(in.getIteration()),
      .start = read_ps_time(in.getStartNs()),
      .iteration_time = Duration{in.getIterationNs()}};
  if (in.getStartNs() < -ns_max || in.getStartNs() > ns_max) {
    throw Malformed{fmt::format("startNs of a rhythm is {}", in.getStartNs())};
  }
  if (rhythm.iteration_time < Duration{0} || rhythm.iteration_time > rhythm_time_max) {
    throw Malformed{fmt::format("iterationNs of a rhythm is {}", in.getIterationNs())};
  }
  return rhythm;
}

/// A time of a plan: what a worker adds up from such times must stay a Duration.
Duration read_plan_time(std::int64_t ns, const char* field) {
  constexpr std::int64_t ns_max = std::int64_t{1} << 57;  // four years
  if (ns < 0 || ns > ns_max) {
    throw Malformed{fmt::format("{} of a group is {}, not from 0 to {}", field, ns, ns_max)};
  }
  return Duration{ns};
}

PlannedGroup read(wire::Group::Reader in) {
  return {
      .range = {{in.getLayerBegin(), in.getLayerEnd()}, in.getBytes()},
      .slot =
          {.current = read_plan_time(in.getCurrentNs(), "currentNs"),
           .window = read_plan_time(in.getWindowNs(), "windowNs"),
           .slot = read_plan_time(in.getSlotNs(), "slotNs"),
           .delay = read_plan_time(in.getDelayNs(), "delayNs")},
      .phase = in.getPhase()};
}

/// What the due table and the slots go by.
void check_groups(const Plan& plan) {
  for (const PlannedGroup& group : plan.groups) {
    if (group.phase >= plan.policy.period) {
      throw Malformed{fmt::format(
          "a group's phase is {}, not below the period {}", group.phase, plan.policy.period)};
    }
    if (group.slot.slot > group.slot.window / plan.policy.workers) {
      throw Malformed{"a group's slots are longer than its window"};
    }
  }
}

/// What only diloco may have, and what it must have.
void check_outer(const SyncPolicy& policy) {
  const double momentum = policy.outer_momentum;
  if (policy.strategy != Strategy::diloco) {
    if (momentum == 0.0) return;
    throw Malformed{fmt::format("outerMomentum is {:g} without strategy diloco", momentum)};
  }
  if (!(momentum >= 0 && momentum < 1)) {
    throw Malformed{fmt::format("outerMomentum is {:g}, not from 0 to below 1", momentum)};
  }
  if (!(policy.beta > 0 && std::isfinite(policy.beta))) {
    throw Malformed{fmt::format("diloco's outer learning rate is {:g}", policy.beta)};
  }
  if (!(policy.alpha > 0 && policy.alpha <= 1) || policy.rule != UpdateRule::post_step) {
    throw Malformed{
        fmt::format("diloco with mixing {:g} and rule {}", policy.alpha, to_string(policy.rule))};
  }
}

Plan read(wire::Plan::Reader in) {
  Plan plan;
  plan.version = PlanVersion(in.getVersion());
  plan.first_iteration = Iteration(in.getFirstIteration());
  plan.policy.strategy = read_enum(in.getStrategy(), Strategy::diloco, "strategy");
  plan.policy.rule = read_enum(in.getRule(), UpdateRule::post_step, "rule");
  plan.policy.phase = read_enum(in.getPhase(), PhaseRule::level, "phase");
  plan.admission = read_enum(in.getAdmission(), Admission::slots_grants, "admission");
  plan.slot_rule = read_enum(in.getSlotRule(), SlotRule::measured, "slotRule");
  plan.slot_clock = read_enum(in.getSlotClock(), SlotClock::shared, "slotClock");
  plan.policy.period = in.getPeriod();
  plan.policy.workers = in.getWorkers();
  plan.policy.alpha = in.getAlpha();
  plan.policy.beta = in.getBeta();
  plan.policy.outer_momentum = in.getOuterMomentum();
  for (const auto group : in.getGroups())
    plan.groups.push_back(read(group));
  if (plan.policy.period < 1 || plan.policy.workers < 1 || plan.groups.empty()) {
    throw Malformed{"a plan without period, workers or groups"};
  }
  check_outer(plan.policy);
  check_groups(plan);
  return plan;
}

Hello read(wire::Hello::Reader in) {
  Hello hello;
  hello.protocol = in.getProtocolVersion();
  hello.job = read_text(in.getJob(), "job");
  hello.rank = in.getRank();
  hello.world = in.getWorld();
  hello.schema_hash = in.getSchemaHash();
  hello.settings = read_text(in.getSettings(), "settings");
  for (const auto parameter : in.getParameters()) {
    ParameterInfo info;
    info.name = read_text(parameter.getName(), "a parameter's name");
    for (const auto extent : parameter.getShape())
      info.shape.push_back(extent);
    hello.parameters.push_back(std::move(info));
  }
  return hello;
}

Profile read(wire::Profile::Reader in) {
  Profile profile;
  profile.forward = read_durations(in.getForwardNs(), "forwardNs", layers_max);
  profile.backward = read_durations(in.getBackwardNs(), "backwardNs", layers_max);
  return profile;
}

Begin read(wire::Begin::Reader in) {
  Begin begin;
  for (const auto plan : in.getPlans())
    begin.plans.push_back(read(plan));
  if (begin.plans.empty()) throw Malformed{"begin without a plan"};
  begin.first_iteration = Iteration(in.getFirstIteration());
  begin.last_iteration = Iteration(in.getLastIteration());
  return begin;
}

ChunkHead read(wire::Chunk::Reader in) {
  return {
      .id = read(in.getId()),
      .plan = PlanVersion(in.getPlanVersion()),
      .codec = in.getCodec(),
      .present = in.getPresent()};
}

Commit read(wire::Commit::Reader in) {
  Commit commit;
  commit.agreement = in.getAgreement();
  if (in.hasPlan()) commit.plan.push_back(read(in.getPlan()));
  commit.last_iteration = Iteration(in.getLastIteration());
  return commit;
}

/// As many as the frame holds; what they mean is the sketch's to check.
std::vector<std::uint64_t> read_counts(capnp::List<std::uint64_t>::Reader in) {
  std::vector<std::uint64_t> counts;
  counts.reserve(in.size());
  for (const auto count : in)
    counts.push_back(count);
  return counts;
}

Farewell read(wire::Farewell::Reader in) {
  Farewell farewell;
  farewell.early = in.getEarly();
  farewell.reason = read_text(in.getReason(), "reason");
  farewell.progress = read(in.getProgress());
  farewell.bytes_pushed = in.getBytesPushed();
  farewell.bytes_pulled = in.getBytesPulled();
  farewell.lateness_counts = read_counts(in.getLatenessCounts());
  farewell.push_counts = read_counts(in.getPushCounts());
  farewell.ready_to_done_counts = read_counts(in.getReadyToDoneCounts());
  farewell.iteration_counts = read_counts(in.getIterationCounts());
  farewell.iterations = Duration{in.getIterationsNs()};
  return farewell;
}

Message read(wire::Message::Reader in) {
  switch (in.which()) {
    case wire::Message::HELLO:
      return read(in.getHello());
    case wire::Message::WELCOME:
      return Welcome{
          .rank = WorkerId(in.getWelcome().getRank()),
          .incarnation = Incarnation(in.getWelcome().getIncarnation()),
          .profile_wanted = in.getWelcome().getProfileWanted()};
    case wire::Message::REFUSE:
      return Refuse{read_text(in.getRefuse().getReason(), "reason")};
    case wire::Message::PROFILE:
      return read(in.getProfile());
    case wire::Message::BEGIN:
      return read(in.getBegin());
    case wire::Message::PUSH:
      return Push{read(in.getPush())};
    case wire::Message::CENTER:
      return CenterReply{read(in.getCenter())};
    case wire::Message::RESEND:
      return Resend{.id = read(in.getResend())};
    case wire::Message::HEARTBEAT:
      return read(in.getHeartbeat());
    case wire::Message::PREPARE:
      return Prepare{in.getPrepare().getAgreement()};
    case wire::Message::PROMISE:
      return Promise{
          .agreement = in.getPromise().getAgreement(),
          .hold = Iteration(in.getPromise().getHoldIteration())};
    case wire::Message::COMMIT:
      return read(in.getCommit());
    case wire::Message::FAREWELL:
      return read(in.getFarewell());
    case wire::Message::ANNOUNCE:
      return Announce{
          .round = read(in.getAnnounce().getRound()),
          .wait = Duration{in.getAnnounce().getWaitNs()}};
    case wire::Message::TURN:
      return Turn{.round = read(in.getTurn())};
    case wire::Message::RECEIVED:
      return Received{.round = read(in.getReceived())};
    case wire::Message::PING:
      return Ping{in.getPing().getNumber()};
    case wire::Message::PONG:
      return Pong{
          .number = in.getPong().getNumber(),
          .heard = read_ps_time(in.getPong().getHeardNs()),
          .answered = read_ps_time(in.getPong().getAnsweredNs())};
    case wire::Message::RHYTHM:
      return read(in.getRhythm());
    case wire::Message::PROBE:
      return Probe{.number = in.getProbe().getNumber(), .bytes = in.getProbe().getBytes()};
  }
  throw Malformed{fmt::format("no message has number {}", static_cast<int>(in.which()))};
}

kj::ArrayPtr<const capnp::word> as_words(std::span<const std::uint64_t> words) {
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size());
}

capnp::Data::Reader payload_of(wire::Message::Reader message) {
  if (message.isPush()) return message.getPush().getPayload();
  if (message.isProbe()) return message.getProbe().getPayload();
  return message.getCenter().getPayload();
}

/// Walks at most what was received, several times over: pointers that share bytes cannot amplify
/// the work.
capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 4 * words + 1024;
  options.nestingLimit = 16;
  return options;
}

}  // namespace

Result<Message> decode_message(std::uint64_t job, const FrameHead& head) {
  try {
    const std::array<kj::ArrayPtr<const capnp::word>, 1> segments{as_words(head.words)};
    capnp::SegmentArrayMessageReader reader(
        kj::arrayPtr(segments.data(), segments.size()), reader_options(head.words.size()));
    const auto root = reader.getRoot<wire::Message>();
    // A worker that has dialled another job's PS is told so in a refusal with that job's hash.
    if (root.getJobHash() != job && !root.isRefuse()) {
      return Error{
          .code = Errc::bad_message,
          .detail = fmt::format(
              "job hash {:016x}, ours is {:016x}: another job", root.getJobHash(), job)};
    }
    return read(root);
  } catch (const Malformed& malformed) {
    return Error{.code = Errc::bad_message, .detail = malformed.what};
  } catch (const kj::Exception& exception) {
    return Error{.code = Errc::bad_message, .detail = exception.getDescription().cStr()};
  }
}

Result<void> check_payload(const FrameHead& head, std::span<const float> values) {
  try {
    const auto bytes = payload_bytes(values);
    const std::array<kj::ArrayPtr<const capnp::word>, 2> segments{
        as_words(head.words),
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()), bytes.size() / 8)};
    capnp::SegmentArrayMessageReader reader(
        kj::arrayPtr(segments.data(), segments.size()),
        reader_options(head.words.size() + bytes.size() / 8));
    const auto root = reader.getRoot<wire::Message>();
    const auto data = payload_of(root);
    const auto* begin = reinterpret_cast<const std::byte*>(data.begin());
    if (begin == bytes.data() && data.size() == values.size_bytes()) return {};
    return Error{
        .code = Errc::bad_message,
        .detail = fmt::format(
            "payload of {} bytes, {} expected in segment 1", data.size(), values.size_bytes())};
  } catch (const kj::Exception& exception) {
    return Error{.code = Errc::bad_message, .detail = exception.getDescription().cStr()};
  }
}

}  // namespace stagger
