#include <string>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/protocol.hpp"

// What clocks say on the wire.
namespace stagger {
namespace {

using testing::HasSubstr;

Result<Message> round_trip(const Message& message) {
  constexpr std::uint64_t job = 7;
  auto words = encode_message(job, message);
  return decode_message(job, FrameHead{.words = std::move(words), .payload_bytes = 0});
}

std::string refusal(const Message& message) {
  const auto back = round_trip(message);
  return back ? "accepted" : back.error().detail;
}

TEST(ProtocolClock, carries_what_clocks_say) {
  EXPECT_EQ(std::get<Ping>(*round_trip(Ping{.number = 77})).number, 77U);
  const Pong sent{.number = 77, .heard = PsTime{-5s}, .answered = PsTime{Duration::max()}};
  const Pong pong = std::get<Pong>(*round_trip(sent));
  EXPECT_EQ(pong.number, sent.number);
  EXPECT_EQ(pong.heard, sent.heard);
  EXPECT_EQ(pong.answered, sent.answered);
  const Rhythm rhythm{
      .iteration = Iteration(9), .start = PsTime{3s}, .iteration_time = rhythm_time_max};
  EXPECT_EQ(std::get<Rhythm>(*round_trip(rhythm)), rhythm);
}

TEST(ProtocolClock, refuses_a_rhythm_whose_times_cannot_be) {
  const Rhythm rhythm{.iteration = Iteration(9), .start = PsTime{3s}, .iteration_time = 1ms};
  Rhythm bad = rhythm;
  bad.start = PsTime{Duration::min()};
  EXPECT_THAT(refusal(bad), HasSubstr("startNs of a rhythm is -9223372036854775808"));
  for (const Duration time : {Duration{-1}, rhythm_time_max + 1ns}) {
    bad = rhythm;
    bad.iteration_time = time;
    EXPECT_THAT(refusal(bad), HasSubstr("iterationNs of a rhythm is"));
  }
}

}  // namespace
}  // namespace stagger
