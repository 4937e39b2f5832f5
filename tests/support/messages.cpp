#include "tests/support/messages.hpp"

#include <span>
#include <variant>

#include "tensor/arena.hpp"

namespace stagger {

Plan example_plan() {
  Plan plan;
  plan.version = PlanVersion(1);
  plan.policy.period = 3;
  plan.policy.workers = 4;
  plan.policy.alpha = 0.225;
  plan.policy.beta = 0.9;
  plan.groups = {
      {.range = {.layers = {.begin = 2, .end = 5}, .bytes = 4096},
       .slot = {.current = 4ms, .window = 16ms, .slot = 4ms}},
      {.range = {.layers = {.begin = 0, .end = 2}, .bytes = 128},
       .slot = {.current = 8ms, .window = 20ms, .slot = 5ms}}};
  set_phases(plan);
  return plan;
}

Hello example_hello() {
  return {
      .protocol = protocol_version,
      .job = "quickstart",
      .rank = 2,
      .world = 4,
      .schema_hash = 0xfeed'beefU,
      .parameters =
          {{.name = "conv1.weight", .shape = {6, 1, 5, 5}, .layer = 0},
           {.name = "conv1.bias", .shape = {6}, .layer = 0}},
      .settings = "job.seed = 1\nsync.period = 3\n"};
}

Heartbeat example_heartbeat() {
  return {
      .iteration = Iteration(12),
      .samples = 384,
      .loss = 0.75,
      .exposed = 5ms,
      .compute = 2s,
      .iterations = {10ms, 11ms},
      .lateness = {3us},
      .overrun = {4us, 5us, 6us},
      .clock = ClockReading{.offset = -3s, .uncertainty = 40us},
      .backward = BackwardStart{.iteration = Iteration(13), .at = PsTime{Duration{9s}}}};
}

Farewell example_farewell() {
  return {
      .early = true,
      .reason = "out of data",
      .progress = example_heartbeat(),
      .bytes_pushed = 123456,
      .bytes_pulled = 654321,
      .lateness_counts = {0, 5, 9},
      .push_counts = {1, 2},
      .ready_to_done_counts = {3},
      .iteration_counts = {0, 0, 4},
      .iterations = 44ms};
}

std::vector<Message> example_messages() {
  const ChunkHead head{
      .id = {.round = {.group = GroupId(1), .iteration = Iteration(12)}, .chunk = 3},
      .plan = PlanVersion(1),
      .codec = codec_float32,
      .present = 4};
  return {
      example_hello(),
      Welcome{.rank = WorkerId(2), .incarnation = Incarnation(5), .profile_wanted = true},
      Refuse{.reason = "rank 2 is taken"},
      Profile{.forward = {1ms, 2ms}, .backward = {2ms, 4ms}},
      Begin{
          .plans = {example_plan()},
          .first_iteration = Iteration(1),
          .last_iteration = Iteration(100)},
      Push{head},
      CenterReply{head},
      Resend{head.id},
      example_heartbeat(),
      Prepare{.agreement = 1},
      Promise{.agreement = 1, .hold = Iteration(14)},
      Commit{.agreement = 1, .plan = {example_plan()}, .last_iteration = Iteration(90)},
      example_farewell(),
      Announce{.round = head.id.round, .wait = 3ms},
      Turn{.round = head.id.round},
      Received{.round = head.id.round},
      Ping{.number = 6},
      Pong{.number = 6, .heard = PsTime{Duration{8s}}, .answered = PsTime{8s + 3us}},
      Rhythm{.iteration = Iteration(15), .start = PsTime{Duration{10s}}, .iteration_time = 12ms},
      Probe{.number = 7, .bytes = sizeof(float) * example_payload_floats}};
}

std::vector<std::uint64_t> encode_example(std::uint64_t job, const Message& message) {
  const AlignedFloats payload(example_payload_floats);
  const bool chunk = std::holds_alternative<Push>(message) ||
                     std::holds_alternative<CenterReply>(message) ||
                     std::holds_alternative<Probe>(message);
  return encode_message(job, message, chunk ? payload.span() : std::span<const float>());
}

}  // namespace stagger
