#include "ps/protocol.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <capnp/message.h>
#include <capnp/orphan.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include "kernels/rng.hpp"
#include "net/protocol.capnp.h"
#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t control_words = 128;
constexpr std::size_t large_words = std::size_t{1} << 17;  // Hello and Begin: up to a head of 1 MiB, touched as needed
constexpr std::uint64_t text_bytes_max = 65536;
constexpr std::size_t layers_max = 65536;

// ---- writing ----

template <class List, class Values, class Convert>
void write_list(List out, const Values& values, Convert convert) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, convert(values[i]));
}

template <class Values>
unsigned size_of(const Values& values) {
  return static_cast<unsigned>(values.size());
}

void write_durations(
    capnp::List<std::int64_t>::Builder out, const std::vector<Duration>& durations) {
  write_list(out, durations, [](Duration duration) { return duration.count(); });
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
  out.setPeriod(in.policy.period);
  out.setWorkers(in.policy.workers);
  out.setAlpha(in.policy.alpha);
  out.setBeta(in.policy.beta);
  auto groups = out.initGroups(size_of(in.groups));
  for (unsigned i = 0; i < groups.size(); ++i) {
    const PlannedGroup& group = in.groups[i];
    groups[i].setLayerBegin(group.range.layers.begin);
    groups[i].setLayerEnd(group.range.layers.end);
    groups[i].setBytes(group.range.bytes);
    groups[i].setCurrentNs(group.slot.current.count());
    groups[i].setWindowNs(group.slot.window.count());
    groups[i].setSlotNs(group.slot.slot.count());
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
    write_list(parameters[i].initShape(size_of(shape)), shape, [](auto n) {
      return n;
    });
  }
}

void write(wire::Message::Builder out, const Welcome& in) {
  auto welcome = out.initWelcome();
  welcome.setRank(in.rank.value());
  welcome.setIncarnation(in.incarnation.value());
  welcome.setProfileWanted(in.profile_wanted);
}

void write(wire::Message::Builder out, const Refuse& in) { out.initRefuse().setReason(in.reason); }

void write(wire::Message::Builder out, const Profile& in) {
  auto profile = out.initProfile();
  write_durations(profile.initForwardNs(size_of(in.forward)), in.forward);
  write_durations(profile.initBackwardNs(size_of(in.backward)), in.backward);
}

void write(wire::Message::Builder out, const Begin& in) {
  auto begin = out.initBegin();
  auto plans = begin.initPlans(size_of(in.plans));
  for (unsigned i = 0; i < plans.size(); ++i) write(plans[i], in.plans[i]);
  begin.setFirstIteration(in.first_iteration.value());
  begin.setLastIteration(in.last_iteration.value());
}

void write(wire::Chunk::Builder out, const ChunkHead& in) {
  write(out.initId(), in.id);
  out.setPlanVersion(in.plan.value());
  out.setCodec(in.codec);
  out.setPresent(in.present);
}

void write(wire::Message::Builder out, const Push& in) { write(out.initPush(), in.head); }

void write(wire::Message::Builder out, const CenterReply& in) { write(out.initCenter(), in.head); }

void write(wire::Message::Builder out, const Resend& in) { write(out.initResend(), in.id); }

void write(wire::Message::Builder out, const Heartbeat& in) { write(out.initHeartbeat(), in); }

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
  write_list(
      farewell.initLatenessCounts(size_of(in.lateness_counts)),
      in.lateness_counts,
      [](std::uint64_t count) { return count; });
}

/// Makes the values the message's second segment: no copy.
void attach(wire::Chunk::Builder chunk, std::span<const float> values) {
  const auto* bytes = reinterpret_cast<const capnp::byte*>(values.data());
  const capnp::Data::Reader data(bytes, values.size_bytes());
  auto orphanage = capnp::Orphanage::getForMessageContaining(chunk);
  chunk.adoptPayload(orphanage.referenceExternalData(data));
}

// ---- reading ----

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

std::vector<Duration> read_durations(
    capnp::List<std::int64_t>::Reader in, const char* field, std::size_t count_max) {
  if (in.size() > count_max) {
    throw Malformed{fmt::format("{} has {} entries, at most {}", field, in.size(), count_max)};
  }
  std::vector<Duration> durations;
  durations.reserve(in.size());
  for (const auto ns : in) durations.emplace_back(ns);
  return durations;
}

Heartbeat read(wire::Heartbeat::Reader in) {
  return {
      .iteration = Iteration(in.getIteration()),
      .samples = in.getSamples(),
      .loss = in.getLoss(),
      .exposed = Duration{in.getExposedNs()},
      .compute = Duration{in.getComputeNs()},
      .iterations = read_durations(in.getIterationNs(), "iterationNs", Heartbeat::samples_max),
      .lateness = read_durations(in.getLatenessNs(), "latenessNs", Heartbeat::samples_max),
      .overrun = read_durations(in.getOverrunNs(), "overrunNs", Heartbeat::samples_max)};
}

PlannedGroup read(wire::Group::Reader in) {
  return {
      .range = {{in.getLayerBegin(), in.getLayerEnd()}, in.getBytes()},
      .slot = {
          .current = Duration{in.getCurrentNs()},
          .window = Duration{in.getWindowNs()},
          .slot = Duration{in.getSlotNs()}}};
}

Plan read(wire::Plan::Reader in) {
  Plan plan;
  plan.version = PlanVersion(in.getVersion());
  plan.first_iteration = Iteration(in.getFirstIteration());
  plan.policy.strategy = read_enum(in.getStrategy(), Strategy::bsp, "strategy");
  plan.policy.rule = read_enum(in.getRule(), UpdateRule::post_step, "rule");
  plan.policy.phase = read_enum(in.getPhase(), PhaseRule::together, "phase");
  plan.admission = read_enum(in.getAdmission(), Admission::slots, "admission");
  plan.policy.period = in.getPeriod();
  plan.policy.workers = in.getWorkers();
  plan.policy.alpha = in.getAlpha();
  plan.policy.beta = in.getBeta();
  for (const auto group : in.getGroups()) plan.groups.push_back(read(group));
  if (plan.policy.period < 1 || plan.policy.workers < 1 || plan.groups.empty()) {
    throw Malformed{"a plan without period, workers or groups"};
  }
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
    for (const auto extent : parameter.getShape()) info.shape.push_back(extent);
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
  for (const auto plan : in.getPlans()) begin.plans.push_back(read(plan));
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

Farewell read(wire::Farewell::Reader in) {
  Farewell farewell;
  farewell.early = in.getEarly();
  farewell.reason = read_text(in.getReason(), "reason");
  farewell.progress = read(in.getProgress());
  farewell.bytes_pushed = in.getBytesPushed();
  farewell.bytes_pulled = in.getBytesPulled();
  for (const auto count : in.getLatenessCounts()) farewell.lateness_counts.push_back(count);
  return farewell;
}

Message read(wire::Message::Reader in) {
  switch (in.which()) {
    case wire::Message::HELLO: return read(in.getHello());
    case wire::Message::WELCOME:
      return Welcome{
          WorkerId(in.getWelcome().getRank()),
          Incarnation(in.getWelcome().getIncarnation()),
          in.getWelcome().getProfileWanted()};
    case wire::Message::REFUSE: return Refuse{read_text(in.getRefuse().getReason(), "reason")};
    case wire::Message::PROFILE: return read(in.getProfile());
    case wire::Message::BEGIN: return read(in.getBegin());
    case wire::Message::PUSH: return Push{read(in.getPush())};
    case wire::Message::CENTER: return CenterReply{read(in.getCenter())};
    case wire::Message::RESEND: return Resend{read(in.getResend())};
    case wire::Message::HEARTBEAT: return read(in.getHeartbeat());
    case wire::Message::PREPARE: return Prepare{in.getPrepare().getAgreement()};
    case wire::Message::PROMISE:
      return Promise{
          in.getPromise().getAgreement(), Iteration(in.getPromise().getHoldIteration())};
    case wire::Message::COMMIT: return read(in.getCommit());
    case wire::Message::FAREWELL: return read(in.getFarewell());
  }
  throw Malformed{fmt::format("no message has number {}", static_cast<int>(in.which()))};
}

kj::ArrayPtr<const capnp::word> as_words(std::span<const std::uint64_t> words) {
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size());
}

/// Walks at most what was received, several times over: pointers that share bytes cannot amplify the work.
capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 4 * words + 1024;
  options.nestingLimit = 16;
  return options;
}

}  // namespace

std::uint64_t job_hash(std::string_view job) { return fnv1a(job); }

std::string_view name_of(const Message& message) {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> names{
      "hello",     "welcome", "refuse",  "profile", "begin",  "push",    "center",
      "resend", "heartbeat", "prepare", "promise", "commit", "farewell"};
  return names.at(message.index());
}

std::vector<std::uint64_t> encode_message(
    std::uint64_t job, const Message& message, std::span<const float> payload) {
  const bool large = std::holds_alternative<Hello>(message) ||
                     std::holds_alternative<Begin>(message) ||
                     std::holds_alternative<Commit>(message) ||
                     std::holds_alternative<Profile>(message) ||
                     std::holds_alternative<Refuse>(message) ||
                     std::holds_alternative<Heartbeat>(message) ||
                     std::holds_alternative<Farewell>(message);
  capnp::MallocMessageBuilder builder(
      static_cast<unsigned>(large ? large_words : control_words),
      capnp::AllocationStrategy::FIXED_SIZE);
  auto root = builder.initRoot<wire::Message>();
  root.setJobHash(job);
  std::visit([&root](const auto& typed) { write(root, typed); }, message);
  if (std::holds_alternative<Push>(message)) attach(root.getPush(), payload);
  if (std::holds_alternative<CenterReply>(message)) attach(root.getCenter(), payload);

  const auto segments = builder.getSegmentsForOutput();
  CHECK_LE(segments.size(), payload.empty() ? 1U : 2U);
  const auto* words = reinterpret_cast<const std::uint64_t*>(segments[0].begin());
  return {words, words + segments[0].size()};
}

Result<Message> decode_message(std::uint64_t job, const FrameHead& head) {
  try {
    const std::array<kj::ArrayPtr<const capnp::word>, 1> segments{as_words(head.words)};
    capnp::SegmentArrayMessageReader reader(
        kj::arrayPtr(segments.data(), segments.size()), reader_options(head.words.size()));
    const auto root = reader.getRoot<wire::Message>();
    if (root.getJobHash() != job) {
      return Error{
          Errc::bad_message,
          fmt::format("job hash {:016x}, ours is {:016x}: another job", root.getJobHash(), job)};
    }
    return read(root);
  } catch (const Malformed& malformed) {
    return Error{Errc::bad_message, malformed.what};
  } catch (const kj::Exception& exception) {
    return Error{Errc::bad_message, exception.getDescription().cStr()};
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
    const auto data = root.isPush() ? root.getPush().getPayload() : root.getCenter().getPayload();
    const auto* begin = reinterpret_cast<const std::byte*>(data.begin());
    if (begin == bytes.data() && data.size() == values.size_bytes()) return {};
    return Error{
        Errc::bad_message,
        fmt::format(
            "payload of {} bytes, {} expected in segment 1", data.size(), values.size_bytes())};
  } catch (const kj::Exception& exception) {
    return Error{Errc::bad_message, exception.getDescription().cStr()};
  }
}

std::span<const std::byte> payload_bytes(std::span<const float> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), (values.size_bytes() + 7) / 8 * 8};
}

std::span<std::byte> payload_bytes(std::span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), (values.size_bytes() + 7) / 8 * 8};
}

}  // namespace stagger
