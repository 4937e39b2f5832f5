#include "ps/protocol.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/rng.hpp"
#include "tensor/arena.hpp"
#include "tests/support/messages.hpp"

namespace stagger {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t job = 0x1234'5678'9abc'def0U;

Result<Message> decoded(std::vector<std::uint64_t> words) {
  return decode_message(job, FrameHead{.words = std::move(words), .payload_bytes = 0});
}

template <class T>
T round_trip(const T& message, std::span<const float> payload = {}) {
  const auto back = decoded(encode_message(job, message, payload));
  if (!back) {
    ADD_FAILURE() << describe(back.error());
    return {};
  }
  EXPECT_EQ(back->index(), Message(message).index());
  return std::get<T>(*back);
}

std::string refusal(const Message& message) {
  const auto back = decoded(encode_message(job, message));
  if (back) return "accepted";
  EXPECT_EQ(back.error().code, Errc::bad_message);
  return back.error().detail;
}

void expect_equal(const Heartbeat& one, const Heartbeat& other) {
  EXPECT_EQ(one.iteration, other.iteration);
  EXPECT_EQ(one.samples, other.samples);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(one.loss), std::bit_cast<std::uint64_t>(other.loss));
  EXPECT_EQ(one.exposed, other.exposed);
  EXPECT_EQ(one.compute, other.compute);
  EXPECT_EQ(one.iterations, other.iterations);
  EXPECT_EQ(one.lateness, other.lateness);
  EXPECT_EQ(one.overrun, other.overrun);
  EXPECT_EQ(one.clock, other.clock);
  EXPECT_EQ(one.backward, other.backward);
}

void expect_equal(const ChunkHead& one, const ChunkHead& other) {
  EXPECT_EQ(one.id, other.id);
  EXPECT_EQ(one.plan, other.plan);
  EXPECT_EQ(one.codec, other.codec);
  EXPECT_EQ(one.present, other.present);
}

TEST(Protocol, carries_a_hello) {
  const Hello sent = example_hello();
  const Hello back = round_trip(sent);
  EXPECT_EQ(back.protocol, sent.protocol);
  EXPECT_EQ(back.job, sent.job);
  EXPECT_EQ(back.rank, sent.rank);
  EXPECT_EQ(back.world, sent.world);
  EXPECT_EQ(back.schema_hash, sent.schema_hash);
  EXPECT_EQ(back.settings, sent.settings);
  ASSERT_EQ(back.parameters.size(), sent.parameters.size());
  for (std::size_t i = 0; i < sent.parameters.size(); ++i) {
    EXPECT_EQ(back.parameters[i].name, sent.parameters[i].name);
    EXPECT_EQ(back.parameters[i].shape, sent.parameters[i].shape);
  }
}

TEST(Protocol, carries_welcome_refuse_and_profile) {
  const Welcome welcome = round_trip(
      Welcome{.rank = WorkerId(3), .incarnation = Incarnation(17), .profile_wanted = false});
  EXPECT_EQ(welcome.rank, WorkerId(3));
  EXPECT_EQ(welcome.incarnation, Incarnation(17));
  EXPECT_FALSE(welcome.profile_wanted);
  EXPECT_EQ(round_trip(Refuse{.reason = "no \xc3\xa9lan"}).reason, "no \xc3\xa9lan");
  const Profile profile = round_trip(Profile{.forward = {1ns, 2us}, .backward = {3ms, 4s}});
  EXPECT_EQ(profile.forward, (std::vector<Duration>{1ns, 2us}));
  EXPECT_EQ(profile.backward, (std::vector<Duration>{3ms, 4s}));
}

TEST(Protocol, carries_a_begin_with_all_plans) {
  const Plan first = example_plan();
  Plan second = first;
  second.version = PlanVersion(2);
  second.first_iteration = Iteration(40);
  second.policy.period = 7;
  const Begin back = round_trip(Begin{
      .plans = {first, second},
      .first_iteration = Iteration(9),
      .last_iteration = Iteration(1000)});
  EXPECT_EQ(back.plans, (std::vector{first, second}));
  EXPECT_EQ(back.first_iteration, Iteration(9));
  EXPECT_EQ(back.last_iteration, Iteration(1000));
}

Plan plan_with(PhaseRule phase, Admission admission) {
  Plan plan = example_plan();
  plan.policy.phase = phase;
  plan.admission = admission;
  plan.slot_rule = SlotRule::measured;
  plan.slot_clock = SlotClock::shared;
  plan.groups[0].slot.delay = 3us;
  return plan;
}

TEST(Protocol, carries_every_phase_and_admission) {
  for (const PhaseRule phase :
       {PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level}) {
    for (const Admission admission :
         {Admission::none, Admission::slots, Admission::grants, Admission::slots_grants}) {
      const Plan plan = plan_with(phase, admission);
      EXPECT_EQ(round_trip(Begin{.plans = {plan}}).plans.front(), plan);
    }
  }
}

TEST(Protocol, carries_every_strategy_and_rule) {
  for (const Strategy strategy :
       {Strategy::interleaved, Strategy::easgd, Strategy::local_sgd, Strategy::bsp}) {
    for (const UpdateRule rule :
         {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
      Plan plan = example_plan();
      plan.policy.strategy = strategy;
      plan.policy.rule = rule;
      EXPECT_EQ(round_trip(Begin{.plans = {plan}}).plans.front(), plan);
    }
  }
}

TEST(Protocol, carries_chunks_both_ways) {
  const AlignedFloats values(100);
  const ChunkHead head{
      .id =
          {.round = {.group = GroupId(5), .iteration = Iteration(std::uint64_t{1} << 40U)},
           .chunk = 9},
      .plan = PlanVersion(3),
      .codec = codec_float32,
      .present = 4};
  expect_equal(round_trip(Push{head}, values.span()).head, head);
  expect_equal(round_trip(CenterReply{head}, values.span()).head, head);
  EXPECT_EQ(round_trip(Resend{head.id}).id, head.id);
}

TEST(Protocol, carries_heartbeats_with_any_loss) {
  expect_equal(round_trip(example_heartbeat()), example_heartbeat());
  Heartbeat broken = example_heartbeat();
  broken.loss = std::numeric_limits<double>::quiet_NaN();
  expect_equal(round_trip(broken), broken);
  expect_equal(round_trip(Heartbeat{}), Heartbeat{});
}

TEST(Protocol, carries_agreements) {
  EXPECT_EQ(round_trip(Prepare{.agreement = 8}).agreement, 8U);
  const Promise promise = round_trip(Promise{.agreement = 8, .hold = Iteration(33)});
  EXPECT_EQ(promise.agreement, 8U);
  EXPECT_EQ(promise.hold, Iteration(33));
  const Commit none = round_trip(Commit{.agreement = 8, .plan = {}, .last_iteration = {}});
  EXPECT_EQ(none.agreement, 8U);
  EXPECT_TRUE(none.plan.empty());
  EXPECT_EQ(none.last_iteration, Iteration(0));
  const Commit commit =
      round_trip(Commit{.agreement = 9, .plan = {example_plan()}, .last_iteration = Iteration(70)});
  EXPECT_EQ(commit.plan, std::vector{example_plan()});
  EXPECT_EQ(commit.last_iteration, Iteration(70));
}

TEST(Protocol, carries_a_farewell) {
  const Farewell sent = example_farewell();
  const Farewell back = round_trip(sent);
  EXPECT_EQ(back.early, sent.early);
  EXPECT_EQ(back.reason, sent.reason);
  expect_equal(back.progress, sent.progress);
  EXPECT_EQ(back.bytes_pushed, sent.bytes_pushed);
  EXPECT_EQ(back.bytes_pulled, sent.bytes_pulled);
  EXPECT_EQ(back.lateness_counts, sent.lateness_counts);
  EXPECT_EQ(back.push_counts, sent.push_counts);
  EXPECT_EQ(back.ready_to_done_counts, sent.ready_to_done_counts);
  EXPECT_EQ(back.iteration_counts, sent.iteration_counts);
  EXPECT_EQ(back.iterations, sent.iterations);
}

TEST(Protocol, carries_what_a_push_asks_for_and_is_answered) {
  const RoundId round{.group = GroupId(7), .iteration = Iteration(std::uint64_t{1} << 40U)};
  const Announce announce = round_trip(Announce{.round = round, .wait = 1234us});
  EXPECT_EQ(announce.round, round);
  EXPECT_EQ(announce.wait, 1234us);
  EXPECT_EQ(round_trip(Turn{.round = round}).round, round);
  EXPECT_EQ(round_trip(Received{.round = round}).round, round);
}

TEST(Protocol, has_a_name_for_every_message) {
  std::vector<std::string> names;
  for (const Message& message : example_messages())
    names.emplace_back(name_of(message));
  EXPECT_EQ(names.size(), std::variant_size_v<Message>);
  EXPECT_EQ(
      names, (std::vector<std::string>{"hello",    "welcome", "refuse",   "profile",   "begin",
                                       "push",     "center",  "resend",   "heartbeat", "prepare",
                                       "promise",  "commit",  "farewell", "announce",  "turn",
                                       "received", "ping",    "pong",     "rhythm",    "probe"}));
}

TEST(Protocol, leaves_the_payload_where_it_is) {
  AlignedFloats values(37);
  for (const auto& message : {Message(Push{}), Message(CenterReply{})}) {
    const auto words = encode_message(job, message, values.span());
    EXPECT_LT(words.size(), 40U);  // the head alone
    const FrameHead head{.words = words, .payload_bytes = payload_bytes(values.span()).size()};
    EXPECT_EQ(head.payload_bytes, 152U);
    EXPECT_TRUE(check_payload(head, std::as_const(values).span()).has_value());
  }
  EXPECT_EQ(
      static_cast<const void*>(payload_bytes(values.span()).data()),
      static_cast<const void*>(values.span().data()));
}

TEST(Protocol, refuses_a_payload_of_another_length) {
  const AlignedFloats values(40);
  const auto words = encode_message(job, Push{}, values.span().first(37));
  const FrameHead head{.words = words, .payload_bytes = 152};
  EXPECT_TRUE(check_payload(head, values.span().first(37)).has_value());
  for (const std::size_t size : {1U, 36U, 38U, 40U}) {
    const auto checked = check_payload(head, values.span().first(size));
    ASSERT_FALSE(checked.has_value()) << size;
    EXPECT_EQ(checked.error().code, Errc::bad_message);
  }
}

TEST(Protocol, refuses_a_payload_that_hides_in_the_head) {
  const AlignedFloats values(16);
  auto words = encode_message(job, Push{}, values.span());
  const auto honest = FrameHead{.words = words, .payload_bytes = 64};
  ASSERT_TRUE(check_payload(honest, values.span()).has_value());
  // The payload's pointer is a far one into segment 1. Any other pointer names bytes of the head,
  // or nothing.
  const auto far = std::find_if(words.begin(), words.end(), [](std::uint64_t word) {
    return (word & 3U) == 2 && word >> 32U == 1;
  });
  ASSERT_NE(far, words.end());
  for (const std::uint64_t pointer :
       {std::uint64_t{0}, (std::uint64_t{64} << 35U) | (std::uint64_t{2} << 32U) | 1U}) {
    auto forged = words;
    forged[static_cast<std::size_t>(far - words.begin())] = pointer;
    EXPECT_FALSE(check_payload({.words = forged, .payload_bytes = 64}, values.span()).has_value());
  }
}

TEST(Protocol, names_both_hashes_when_the_job_is_another) {
  const auto words = encode_message(job_hash("theirs"), Prepare{.agreement = 1});
  const auto refused = decode_message(job_hash("ours"), FrameHead{.words = words});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::bad_message);
  EXPECT_THAT(refused.error().detail, HasSubstr("another job"));
  EXPECT_NE(job_hash("theirs"), job_hash("ours"));
}

TEST(Protocol, refuses_plans_without_period_workers_or_groups) {
  Plan plan = example_plan();
  plan.policy.period = 0;
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("a plan without"));
  plan = example_plan();
  plan.policy.workers = 0;
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("a plan without"));
  plan = example_plan();
  plan.groups.clear();
  EXPECT_THAT(
      refusal(Commit{.agreement = 1, .plan = {plan}, .last_iteration = {}}),
      HasSubstr("a plan without"));
  EXPECT_THAT(refusal(Begin{}), HasSubstr("begin without a plan"));
}

TEST(Protocol, refuses_values_that_no_enumeration_has) {
  Plan plan = example_plan();
  plan.policy.strategy = Strategy{77};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("strategy has no value 77"));
  plan = example_plan();
  plan.policy.rule = UpdateRule{3};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("rule has no value 3"));
  plan = example_plan();
  plan.policy.phase = PhaseRule{4};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("phase has no value 4"));
  plan = example_plan();
  plan.admission = Admission{255};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("admission has no value 255"));
  plan = example_plan();
  plan.slot_rule = SlotRule{2};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("slotRule has no value 2"));
  plan = example_plan();
  plan.slot_clock = SlotClock{2};
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("slotClock has no value 2"));
}

TEST(Protocol, refuses_groups_that_are_never_due_and_slots_that_cannot_be) {
  Plan plan = example_plan();
  plan.groups[1].phase = 3;
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("phase is 3, not below the period 3"));
  plan = example_plan();
  plan.groups[0].slot.current = -1ns;
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("currentNs of a group is -1"));
  plan = example_plan();
  plan.groups[0].slot.window = Duration::max();
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("windowNs of a group is"));
  plan = example_plan();
  plan.groups[0].slot.slot += 1ns;
  EXPECT_THAT(refusal(Begin{.plans = {plan}}), HasSubstr("slots are longer than its window"));
}

TEST(Protocol, refuses_texts_and_lists_that_are_too_long) {
  EXPECT_THAT(
      refusal(Refuse{.reason = std::string(65537, 'x')}), HasSubstr("reason has 65537 bytes"));
  Hello hello = example_hello();
  hello.settings.assign(70000, 's');
  EXPECT_THAT(refusal(hello), HasSubstr("settings has 70000 bytes"));
  Heartbeat heartbeat;
  heartbeat.lateness.assign(Heartbeat::samples_max + 1, 1us);
  EXPECT_THAT(refusal(heartbeat), HasSubstr("latenessNs has 1025 entries"));
}

TEST(Protocol, refuses_heads_that_are_cut_off_anywhere) {
  for (const Message& message : example_messages()) {
    const auto words = encode_example(job, message);
    for (std::size_t size = 0; size < words.size(); ++size) {
      const std::vector<std::uint64_t> part(
          words.begin(), words.begin() + static_cast<std::ptrdiff_t>(size));
      const auto result = decoded(part);  // may be whole where only empty parts are cut
      if (!result) {
        EXPECT_EQ(result.error().code, Errc::bad_message);
      }
    }
    EXPECT_FALSE(decoded({}).has_value()) << name_of(message);
  }
}

/// Nothing but an error may come of bytes that are no message.
TEST(Protocol, survives_any_mutation_of_its_messages) {
  const auto messages = example_messages();
  const AlignedFloats payload(16);
  RandomSequence random(1, fnv1a("mutations"));
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Message& message = messages[random.below(static_cast<std::uint32_t>(messages.size()))];
    auto words = encode_example(job, message);
    for (std::uint32_t change = 1 + random.below(4); change > 0; --change) {
      auto& word = words[random.below(static_cast<std::uint32_t>(words.size()))];
      switch (random.below(3)) {
        case 0:
          word ^= std::uint64_t{1} << random.below(64);
          break;
        case 1:
          word = (std::uint64_t{random.next()} << 32U) | random.next();
          break;
        default:
          word = random.below(16);
          break;
      }
    }
    const FrameHead head{.words = words, .payload_bytes = 64};
    const auto result = decode_message(job, head);
    if (!result) {
      ++refused;
      EXPECT_EQ(result.error().code, Errc::bad_message);
    } else if (std::holds_alternative<Push>(*result)) {
      check_payload(head, payload.span());
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Protocol, survives_random_words) {
  RandomSequence random(2, fnv1a("words"));
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint64_t> words(random.below(40));
    for (auto& word : words) {
      word = random.below(2) == 0 ? random.below(1000)
                                  : (std::uint64_t{random.next()} << 32U) | random.next();
    }
    const auto result = decoded(words);
    if (!result) {
      EXPECT_EQ(result.error().code, Errc::bad_message);
    }
  }
}

}  // namespace
}  // namespace stagger
