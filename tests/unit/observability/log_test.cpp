#include "observability/log.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {

namespace {

/// A log whose lines end in a vector, at a time that stands still.
struct LogToMemory {
  std::vector<std::string> lines;
  Log log;

  explicit LogToMemory(LogLevel level_min = LogLevel::debug)
      : log(
            "ps",
            level_min,
            []() { return std::string("12.5"); },
            [this](std::string_view line) { lines.emplace_back(line); }) {}
};

TEST(Log, writes_time_level_component_message_and_fields) {
  LogToMemory memory;
  memory.log.warning("worker_silent", {{"rank", 3}, {"group", 2}, {"seconds", 1.25}});
  ASSERT_EQ(memory.lines.size(), 1U);
  EXPECT_EQ(memory.lines[0], "12.5 warning ps worker_silent rank=3 group=2 seconds=1.25");
}

TEST(Log, quotes_values_with_spaces_quotes_and_equal_signs) {
  EXPECT_EQ(
      format_line(LogLevel::info, "ps", "m", {{"a", "two words"}, {"b", "x=\"1\""}, {"c", ""}}),
      R"(info ps m a="two words" b="x=\"1\"" c="")");
}

TEST(Log, a_hostile_value_cannot_begin_a_line_of_its_own) {
  std::string hostile = "x\n12.5 error ps forged rank=1\r\t\x1b[2J";
  hostile += '\0';
  const std::string line = format_line(LogLevel::info, "ps", "refused", {{"peer", hostile}});
  EXPECT_EQ(line, R"(info ps refused peer="x\n12.5 error ps forged rank=1\r\t\x1b[2J\x00")");
  EXPECT_TRUE(std::all_of(
      line.begin(), line.end(), [](char letter) { return letter >= ' ' && letter <= '~'; }));
}

TEST(Log, bytes_beyond_ascii_are_escaped) {
  EXPECT_EQ(
      format_line(LogLevel::info, "ps", "m", {{"name", "\xc2\x9b"}}),
      R"(info ps m name="\xc2\x9b")");
}

TEST(Log, a_backslash_is_escaped_so_that_an_escape_cannot_be_imitated) {
  EXPECT_EQ(
      format_line(LogLevel::info, "ps", "m", {{"path", R"(a\nb)"}}), R"(info ps m path="a\\nb")");
}

TEST(Log, a_message_and_a_component_cannot_look_like_fields) {
  EXPECT_EQ(format_line(LogLevel::debug, "p s", "gone rank=9", {}), R"(debug "p s" "gone rank=9")");
}

TEST(Log, numbers_that_are_not_finite_are_still_words) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      format_line(LogLevel::error, "ps", "m", {{"loss", infinity}, {"step", -1e-9}}),
      "error ps m loss=inf step=-1e-09");
}

TEST(Log, drops_what_is_below_the_level) {
  LogToMemory memory(LogLevel::warning);
  memory.log.debug("a");
  memory.log.info("b");
  memory.log.warning("c");
  memory.log.error("d");
  EXPECT_EQ(memory.lines, (std::vector<std::string>{"12.5 warning ps c", "12.5 error ps d"}));
}

TEST(Log, if_changed_repeats_a_line_only_after_another_with_the_same_key) {
  LogToMemory memory;
  memory.log.if_changed("wait/0", LogLevel::info, "waiting", {{"rank", 1}});
  memory.log.if_changed("wait/0", LogLevel::info, "waiting", {{"rank", 1}});
  memory.log.if_changed("wait/1", LogLevel::info, "waiting", {{"rank", 1}});
  memory.log.if_changed("wait/0", LogLevel::info, "waiting", {{"rank", 2}});
  memory.log.if_changed("wait/0", LogLevel::info, "waiting", {{"rank", 1}});
  EXPECT_EQ(memory.lines.size(), 4U);
}

TEST(Log, if_changed_keeps_a_bounded_memory) {
  LogToMemory memory;
  for (std::size_t key = 0; key <= Log::keys_max; ++key) {
    memory.log.if_changed(std::to_string(key), LogLevel::info, "same");
  }
  // The last key began the memory anew, so the first is news again and the last is not.
  memory.lines.clear();
  memory.log.if_changed(std::to_string(Log::keys_max), LogLevel::info, "same");
  EXPECT_TRUE(memory.lines.empty());
  memory.log.if_changed("0", LogLevel::info, "same");
  EXPECT_EQ(memory.lines.size(), 1U);
}

}  // namespace

}  // namespace stagger
