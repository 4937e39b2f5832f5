#include "ps/join_line.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(JoinLine, serves_few_workers_at_a_time_one_piece_each) {
  JoinLine line;
  for (std::uint32_t rank = 0; rank < 6; ++rank)
    line.ask(WorkerId(rank), 2);
  for (std::uint32_t rank = 0; rank < JoinLine::workers_max; ++rank)
    EXPECT_EQ(line.next(), WorkerId(rank));
  EXPECT_EQ(line.next(), std::nullopt);
  line.sent(WorkerId(2));
  EXPECT_EQ(line.next(), WorkerId(2));
  EXPECT_EQ(line.next(), std::nullopt);
  line.sent(WorkerId(2));  // its last
  EXPECT_EQ(line.next(), WorkerId(4));
  EXPECT_EQ(line.next(), std::nullopt);
}

TEST(JoinLine, lets_the_others_on_when_one_is_gone) {
  JoinLine line;
  for (std::uint32_t rank = 0; rank < 5; ++rank)
    line.ask(WorkerId(rank), 100);
  while (line.next()) {
  }
  line.forget(WorkerId(1));
  EXPECT_EQ(line.next(), WorkerId(4));
  line.sent(WorkerId(1));  // too late
  EXPECT_EQ(line.next(), std::nullopt);
  line.ask(WorkerId(1), 1);  // it is back
  line.forget(WorkerId(0));
  EXPECT_EQ(line.next(), WorkerId(1));
}

TEST(JoinLine, sends_every_piece_once_whatever_order_they_leave_in) {
  JoinLine line;
  for (std::uint32_t rank = 0; rank < 50; ++rank)
    line.ask(WorkerId(rank), rank);  // rank 0 has none to wait for
  std::map<WorkerId, std::size_t> pieces;
  std::vector<WorkerId> under_way;
  std::size_t most = 0;
  for (std::size_t step = 0;; ++step) {
    while (const auto worker = line.next()) {
      ++pieces[*worker];
      under_way.push_back(*worker);
    }
    most = std::max(most, under_way.size());
    if (under_way.empty()) break;
    const auto left = under_way.begin() + static_cast<std::ptrdiff_t>(step % under_way.size());
    const WorkerId worker = *left;
    under_way.erase(left);
    line.sent(worker);
  }
  EXPECT_EQ(most, JoinLine::workers_max);
  EXPECT_EQ(pieces.size(), 49U);
  for (const auto& [worker, count] : pieces)
    EXPECT_EQ(count, worker.value());
}

}  // namespace
}  // namespace stagger
