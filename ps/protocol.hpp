#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/error.hpp"
#include "net/frame.hpp"
#include "net/time.hpp"
#include "ps/clock_offset.hpp"
#include "ps/ids.hpp"
#include "ps/plan.hpp"
#include "ps/rhythm.hpp"
#include "tensor/layout.hpp"

/// The wire as typed values. Schema: net/protocol.capnp, where each message says who sends it and
/// when.
///
/// Both sides check: what is sent satisfies CHECKs, what is received is refused with a reason
/// (bad_message).
namespace stagger {

constexpr std::uint16_t protocol_version = 3;
constexpr std::uint8_t codec_float32 = 0;

/// FNV-1a of the job id.
std::uint64_t job_hash(std::string_view job);

struct ChunkId {
  RoundId round;
  std::uint32_t chunk = 0;

  auto operator<=>(const ChunkId&) const = default;
};

struct Hello {
  std::uint16_t protocol = protocol_version;
  std::string job;
  std::int32_t rank = -1;
  std::uint32_t world = 1;
  std::uint64_t schema_hash = 0;
  std::vector<ParameterInfo> parameters;  ///< layer is not sent
  std::string settings;
};

struct Welcome {
  WorkerId rank;
  Incarnation incarnation;
  bool profile_wanted = true;
};

struct Refuse {
  std::string reason;
};

struct Profile {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
};

struct Begin {
  std::vector<Plan> plans;
  Iteration first_iteration{1};
  Iteration last_iteration{1};
};

/// The head of a chunk; its payload is received separately (FrameHead::payload_bytes).
struct ChunkHead {
  ChunkId id;
  PlanVersion plan;
  std::uint8_t codec = codec_float32;
  std::uint32_t present = 0;
};

struct Push {
  ChunkHead head;
};

struct CenterReply {
  ChunkHead head;
};

struct Resend {
  ChunkId id;
};

struct Heartbeat {
  Iteration iteration;
  std::uint64_t samples = 0;
  double loss = 0.0;
  Duration exposed{0};
  Duration compute{0};
  std::vector<Duration>
      iterations;  ///< durations since the last heartbeat, at most samples_max of each
  std::vector<Duration> lateness;
  std::vector<Duration> overrun;
  Duration round_trip{0};             ///< as the sender's end of the connection knows it
  std::uint64_t retransmissions = 0;  ///< likewise
  std::optional<ClockReading> clock = std::nullopt;      ///< the worker's; none: not known yet
  std::optional<BackwardStart> backward = std::nullopt;  ///< the worker's last

  static constexpr std::size_t samples_max = 1024;
};

struct Prepare {
  std::uint64_t agreement = 0;
};

struct Promise {
  std::uint64_t agreement = 0;
  Iteration hold;
};

struct Commit {
  std::uint64_t agreement = 0;
  std::vector<Plan> plan;    ///< none or one
  Iteration last_iteration;  ///< 0: unchanged
};

struct Farewell {
  bool early = false;
  std::string reason;
  Heartbeat progress;
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  // Buckets of a QuantileSketch each.
  std::vector<std::uint64_t> lateness_counts;
  std::vector<std::uint64_t> push_counts;
  std::vector<std::uint64_t> ready_to_done_counts;
  std::vector<std::uint64_t> iteration_counts;
  Duration iterations{0};  ///< their sum
};

struct Announce {
  RoundId round;
  Duration wait{0};  ///< until the worker's slot begins
};

/// The right to push now.
struct Turn {
  RoundId round;
};

/// The last byte of the worker's push has been read.
struct Received {
  RoundId round;
};

struct Ping {
  std::uint64_t number = 0;
};

struct Pong {
  std::uint64_t number = 0;
  PsTime heard;
  PsTime answered;
};

/// The PS's question for so many bytes; with them as its payload, the worker's answer.
struct Probe {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
};

using Message = std::variant<
    Hello,
    Welcome,
    Refuse,
    Profile,
    Begin,
    Push,
    CenterReply,
    Resend,
    Heartbeat,
    Prepare,
    Promise,
    Commit,
    Farewell,
    Announce,
    Turn,
    Received,
    Ping,
    Pong,
    Rhythm,
    Probe>;

/// A message's name, for logs.
std::string_view name_of(const Message& message);

/// Segment 0 of a frame. REQUIRES for Push, CenterReply and a Probe's answer: `payload` is what the
/// frame carries as segment 1 (8-byte aligned, readable up to the next multiple of 8).
std::vector<std::uint64_t> encode_message(
    std::uint64_t job, const Message& message, std::span<const float> payload = {});

/// Reads a received head. bad_message says what is wrong; a wrong job names both hashes
/// (a refusal is read whatever its job).
Result<Message> decode_message(std::uint64_t job, const FrameHead& head);

/// After the payload has come: that the head's payload pointer covers exactly `values` in
/// segment 1.
Result<void> check_payload(const FrameHead& head, std::span<const float> values);

/// The payload of a frame as it travels: the values and the padding to a multiple of 8 bytes.
std::span<const std::byte> payload_bytes(std::span<const float> values);
std::span<std::byte> payload_bytes(std::span<float> values);

}  // namespace stagger
