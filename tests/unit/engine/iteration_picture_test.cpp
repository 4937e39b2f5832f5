#include "engine/iteration_picture.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagger {
namespace {

using testing::HasSubstr;
using testing::Not;

ActivitySpan span(Activity activity, Duration begin, Duration end) {
  return {
      .activity = activity, .group = GroupId(0), .begin = TimePoint{begin}, .end = TimePoint{end}};
}

/// Half forward, half backward, and a push in the last quarter after a wait for its turn.
Timeline example() {
  Timeline timeline(Iteration(3));
  timeline.add(Iteration(3), span(Activity::forward, 0ms, 48ms));
  timeline.add(Iteration(3), span(Activity::backward, 48ms, 96ms));
  timeline.add(Iteration(3), span(Activity::turn, 48ms, 72ms));
  timeline.add(Iteration(3), span(Activity::push, 72ms, 96ms));
  return timeline;
}

TEST(IterationPicture, draws_what_a_worker_computes_above_what_it_does_on_the_link) {
  const std::vector<Timeline> workers{example()};
  const std::string text = picture_text(workers);
  EXPECT_THAT(text, HasSubstr("iteration 3, 96.000 ms across"));
  EXPECT_THAT(text, HasSubstr("    0 |" + std::string(48, 'F') + std::string(48, 'B') + "|\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "      |" + std::string(48, ' ') + std::string(24, '.') + std::string(24, '#') + "|\n"));
}

TEST(IterationPicture, of_many_workers_some_are_drawn_and_all_are_in_the_file) {
  const std::vector<Timeline> workers(100, example());
  const std::string text = picture_text(workers, 4);
  for (const char* row : {"    0 |", "   25 |", "   50 |", "   75 |"})
    EXPECT_THAT(text, HasSubstr(row));
  EXPECT_THAT(text, Not(HasSubstr("   99 |")));
  const std::string svg = picture_svg(workers);
  EXPECT_THAT(svg, HasSubstr(">worker 99</text>"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(IterationPicture, other_iterations_are_not_in_it) {
  Timeline timeline(Iteration(3));
  timeline.add(Iteration(2), span(Activity::forward, 0ms, 10ms));
  const std::vector<Timeline> workers{timeline};
  EXPECT_EQ(picture_text(workers), "nothing was recorded\n");
  EXPECT_THAT(picture_svg(workers), Not(HasSubstr("worker 0")));
}

}  // namespace
}  // namespace stagger
