#include "ps/protocol.hpp"

#include <array>
#include <optional>
#include <utility>

#include <capnp/message.h>
#include <capnp/orphan.h>

#include "kernels/rng.hpp"
#include "net/protocol.capnp.h"
#include "observability/check.hpp"

// Messages into frames. The other way: protocol_decode.cpp.
namespace stagger {

namespace {

constexpr std::size_t first_words = 64;

template <class List, class Values, class Convert>
void write_list(List out, const Values& values, Convert convert) {
  for (unsigned i = 0; i < out.size(); ++i)
    out.set(i, convert(values[i]));
}

template <class Values>
unsigned size_of(const Values& values) {
  return static_cast<unsigned>(values.size());
}

void write_durations(
    capnp::List<std::int64_t>::Builder out, const std::vector<Duration>& durations) {
  write_list(out, durations, [](Duration duration) { return duration.count(); });
}

void write_counts(
    capnp::List<std::uint64_t>::Builder out, const std::vector<std::uint64_t>& counts) {
  write_list(out, counts, [](std::uint64_t count) { return count; });
}

void write(wire::Heartbeat::Builder out, const Heartbeat& in) {
  out.setIteration(in.iteration.value());
  out.setSamples(in.samples);
  out.setLoss(in.loss);
  out.setExposedNs(in.exposed.count());
  out.setComputeNs(in.compute.count());
  write_durations(out.initIterationNs(size_of(in.iterations)), in.iterations);
  write_durations(out.initLatenessNs(size_of(in.lateness)), in.lateness);
  write_durations(out.initOverrunNs(size_of(in.overrun)), in.overrun);
  out.setRoundTripNs(in.round_trip.count());
  out.setRetransmissions(in.retransmissions);
  if (in.clock) {
    auto clock = out.initClock();
    clock.setOffsetNs(in.clock->offset.count());
    clock.setUncertaintyNs(in.clock->uncertainty.count());
  }
  if (in.backward) {
    auto backward = out.initBackward();
    backward.setIteration(in.backward->iteration.value());
    backward.setAtNs(in.backward->at.time_since_epoch().count());
  }
}

void write(wire::ChunkId::Builder out, const ChunkId& id) {
  out.setGroup(id.round.group.value());
  out.setIteration(id.round.iteration.value());
  out.setChunk(id.chunk);
}

void write(wire::Plan::Builder out, const Plan& in) {
  out.setVersion(in.version.value());
  out.setFirstIteration(in.first_iteration.value());
  out.setStrategy(static_cast<std::uint8_t>(in.policy.strategy));
  out.setRule(static_cast<std::uint8_t>(in.policy.rule));
  out.setPhase(static_cast<std::uint8_t>(in.policy.phase));
  out.setAdmission(static_cast<std::uint8_t>(in.admission));
  out.setSlotRule(static_cast<std::uint8_t>(in.slot_rule));
  out.setSlotClock(static_cast<std::uint8_t>(in.slot_clock));
  out.setPeriod(in.policy.period);
  out.setWorkers(in.policy.workers);
  out.setAlpha(in.policy.alpha);
  out.setBeta(in.policy.beta);
  out.setOuterMomentum(in.policy.outer_momentum);
  auto groups = out.initGroups(size_of(in.groups));
  for (unsigned i = 0; i < groups.size(); ++i) {
    const PlannedGroup& group = in.groups[i];
    groups[i].setLayerBegin(group.range.layers.begin);
    groups[i].setLayerEnd(group.range.layers.end);
    groups[i].setBytes(group.range.bytes);
    groups[i].setCurrentNs(group.slot.current.count());
    groups[i].setWindowNs(group.slot.window.count());
    groups[i].setSlotNs(group.slot.slot.count());
    groups[i].setDelayNs(group.slot.delay.count());
    groups[i].setPhase(group.phase);
  }
}

void write(wire::Message::Builder out, const Hello& in) {
  auto hello = out.initHello();
  hello.setProtocolVersion(in.protocol);
  hello.setJob(in.job);
  hello.setRank(in.rank);
  hello.setWorld(in.world);
  hello.setSchemaHash(in.schema_hash);
  hello.setSettings(in.settings);
  auto parameters = hello.initParameters(size_of(in.parameters));
  for (unsigned i = 0; i < parameters.size(); ++i) {
    parameters[i].setName(in.parameters[i].name);
    const auto& shape = in.parameters[i].shape;
    write_list(parameters[i].initShape(size_of(shape)), shape, [](auto n) { return n; });
  }
}

void write(wire::Message::Builder out, const Welcome& in) {
  auto welcome = out.initWelcome();
  welcome.setRank(in.rank.value());
  welcome.setIncarnation(in.incarnation.value());
  welcome.setProfileWanted(in.profile_wanted);
}

void write(wire::Message::Builder out, const Refuse& in) {
  out.initRefuse().setReason(in.reason);
}

void write(wire::Message::Builder out, const Profile& in) {
  auto profile = out.initProfile();
  write_durations(profile.initForwardNs(size_of(in.forward)), in.forward);
  write_durations(profile.initBackwardNs(size_of(in.backward)), in.backward);
}

void write(wire::Message::Builder out, const Begin& in) {
  auto begin = out.initBegin();
  auto plans = begin.initPlans(size_of(in.plans));
  for (unsigned i = 0; i < plans.size(); ++i)
    write(plans[i], in.plans[i]);
  begin.setFirstIteration(in.first_iteration.value());
  begin.setLastIteration(in.last_iteration.value());
}

void write(wire::Chunk::Builder out, const ChunkHead& in) {
  write(out.initId(), in.id);
  out.setPlanVersion(in.plan.value());
  out.setCodec(in.codec);
  out.setPresent(in.present);
}

void write(wire::Message::Builder out, const Push& in) {
  write(out.initPush(), in.head);
}

void write(wire::Message::Builder out, const CenterReply& in) {
  write(out.initCenter(), in.head);
}

void write(wire::Message::Builder out, const Resend& in) {
  write(out.initResend(), in.id);
}

void write(wire::Message::Builder out, const Heartbeat& in) {
  write(out.initHeartbeat(), in);
}

void write(wire::Message::Builder out, const Prepare& in) {
  out.initPrepare().setAgreement(in.agreement);
}

void write(wire::Message::Builder out, const Promise& in) {
  auto promise = out.initPromise();
  promise.setAgreement(in.agreement);
  promise.setHoldIteration(in.hold.value());
}

void write(wire::Message::Builder out, const Commit& in) {
  auto commit = out.initCommit();
  commit.setAgreement(in.agreement);
  if (!in.plan.empty()) write(commit.initPlan(), in.plan.front());
  commit.setLastIteration(in.last_iteration.value());
}

void write(wire::Message::Builder out, const Farewell& in) {
  auto farewell = out.initFarewell();
  farewell.setEarly(in.early);
  farewell.setReason(in.reason);
  write(farewell.initProgress(), in.progress);
  farewell.setBytesPushed(in.bytes_pushed);
  farewell.setBytesPulled(in.bytes_pulled);
  write_counts(farewell.initLatenessCounts(size_of(in.lateness_counts)), in.lateness_counts);
  write_counts(farewell.initPushCounts(size_of(in.push_counts)), in.push_counts);
  write_counts(
      farewell.initReadyToDoneCounts(size_of(in.ready_to_done_counts)), in.ready_to_done_counts);
  write_counts(farewell.initIterationCounts(size_of(in.iteration_counts)), in.iteration_counts);
  farewell.setIterationsNs(in.iterations.count());
}

void write(wire::Round::Builder out, const RoundId& in) {
  out.setGroup(in.group.value());
  out.setIteration(in.iteration.value());
}

void write(wire::Message::Builder out, const Announce& in) {
  auto announce = out.initAnnounce();
  write(announce.initRound(), in.round);
  announce.setWaitNs(in.wait.count());
}

void write(wire::Message::Builder out, const Turn& in) {
  write(out.initTurn(), in.round);
}

void write(wire::Message::Builder out, const Received& in) {
  write(out.initReceived(), in.round);
}

void write(wire::Message::Builder out, const Ping& in) {
  out.initPing().setNumber(in.number);
}

void write(wire::Message::Builder out, const Pong& in) {
  auto pong = out.initPong();
  pong.setNumber(in.number);
  pong.setHeardNs(in.heard.time_since_epoch().count());
  pong.setAnsweredNs(in.answered.time_since_epoch().count());
}

void write(wire::Message::Builder out, const Rhythm& in) {
  auto rhythm = out.initRhythm();
  rhythm.setIteration(in.iteration.value());
  rhythm.setStartNs(in.start.time_since_epoch().count());
  rhythm.setIterationNs(in.iteration_time.count());
}

void write(wire::Message::Builder out, const Probe& in) {
  auto probe = out.initProbe();
  probe.setNumber(in.number);
  probe.setBytes(in.bytes);
}

/// Makes the values the message's second segment: no copy.
template <class Carrier>
void attach(Carrier carrier, std::span<const float> values) {
  const auto* bytes = reinterpret_cast<const capnp::byte*>(values.data());
  const capnp::Data::Reader data(bytes, values.size_bytes());
  auto orphanage = capnp::Orphanage::getForMessageContaining(carrier);
  carrier.adoptPayload(orphanage.referenceExternalData(data));
}

/// The message's first segment, unless it needs more words.
std::optional<std::vector<std::uint64_t>> encode_in_segment(
    std::size_t words, std::uint64_t job, const Message& message, std::span<const float> payload) {
  capnp::MallocMessageBuilder builder(
      static_cast<unsigned>(words), capnp::AllocationStrategy::FIXED_SIZE);
  auto root = builder.initRoot<wire::Message>();
  root.setJobHash(job);
  std::visit([&root](const auto& typed) { write(root, typed); }, message);
  if (std::holds_alternative<Push>(message)) attach(root.getPush(), payload);
  if (std::holds_alternative<CenterReply>(message)) attach(root.getCenter(), payload);
  if (std::holds_alternative<Probe>(message) && !payload.empty()) attach(root.getProbe(), payload);

  const auto segments = builder.getSegmentsForOutput();
  if (segments.size() > (payload.empty() ? 1U : 2U)) return std::nullopt;
  const auto* begin = reinterpret_cast<const std::uint64_t*>(segments[0].begin());
  return std::vector<std::uint64_t>(begin, begin + segments[0].size());
}

}  // namespace

std::uint64_t job_hash(std::string_view job) {
  return fnv1a(job);
}

std::string_view name_of(const Message& message) {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> names{
      "hello",  "welcome",   "refuse",  "profile", "begin",  "push",     "center",
      "resend", "heartbeat", "prepare", "promise", "commit", "farewell", "announce",
      "turn",   "received",  "ping",    "pong",    "rhythm", "probe"};
  return names.at(message.index());
}

std::vector<std::uint64_t> encode_message(
    std::uint64_t job, const Message& message, std::span<const float> payload) {
  // All messages but a few fit the first size. A segment is zeroed, so one that fits all would cost
  // a heartbeat more than everything else it takes.
  for (std::size_t words = first_words;; words *= 16) {
    auto head = encode_in_segment(words, job, message, payload);
    if (head) return *std::move(head);
  }
}

std::span<const std::byte> payload_bytes(std::span<const float> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), (values.size_bytes() + 7) / 8 * 8};
}

std::span<std::byte> payload_bytes(std::span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), (values.size_bytes() + 7) / 8 * 8};
}

}  // namespace stagger
