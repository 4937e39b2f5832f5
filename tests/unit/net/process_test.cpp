#include "net/real/process.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "net/real/signals.hpp"
#include "tests/unit/net/real_world.hpp"

namespace stagger {
namespace {

/// What the tasks of a test found out.
struct Findings {
  std::vector<int> codes;
  std::vector<int> signals;
  std::string output;
};

Task<void> wait_for(Process& process, Findings& findings) {
  findings.codes.push_back(co_await process.wait());
}

Task<void> read_all(Process& process, Findings& findings) {
  while (true) {
    const std::string part = co_await process.read_output();
    if (part.empty()) co_return;
    findings.output += part;
  }
}

/// Signals a process that has said that it is ready.
Task<void> signal_when_ready(Process& process, int number, Findings& findings) {
  while (findings.output.find("ready") == std::string::npos) {
    const std::string part = co_await process.read_output();
    if (part.empty()) co_return;
    findings.output += part;
  }
  process.signal(number);
}

Task<void> await_signals(Signals& signals, int count, Findings& findings) {
  for (int i = 0; i < count; ++i)
    findings.signals.push_back(co_await signals.next());
}

Task<void> raise_at(Clock& clock, TimePoint time, int number) {
  co_await clock.sleep_until(time);
  std::raise(number);
}

Task<void> cancel_at(Clock& clock, TimePoint time, TaskScope& scope) {
  co_await clock.sleep_until(time);
  scope.cancel();
}

class Child : public RealWorld {
 protected:
  std::unique_ptr<Process> shell(const std::string& script, ProcessOptions options = {}) {
    options.argv = {"sh", "-c", script};
    return Process::start(real_.context(), options).value();
  }

  Findings findings_;
};

TEST_F(Child, exit_code_is_its_own_or_tells_the_signal) {
  const auto success = shell("exit 0");
  const auto failure = shell("exit 3");
  const auto killed = shell("kill -TERM $$");
  scope_.spawn("wait", wait_for(*success, findings_));
  run();
  scope_.spawn("wait", wait_for(*failure, findings_));
  run();
  scope_.spawn("wait", wait_for(*killed, findings_));
  run();
  scope_.spawn("wait again", wait_for(*failure, findings_));
  run();
  EXPECT_EQ(findings_.codes, (std::vector<int>{0, 3, 128 + SIGTERM, 3}));
}

TEST_F(Child, both_outputs_are_read_to_the_end) {
  const auto process = shell("echo out; echo err >&2; head -c 100000 /dev/zero");
  scope_.spawn("read", read_all(*process, findings_));
  scope_.spawn("wait", wait_for(*process, findings_));
  run();
  EXPECT_EQ(findings_.output.substr(0, 8), "out\nerr\n");
  EXPECT_EQ(findings_.output.size(), 8U + 100000U);
}

TEST_F(Child, output_is_appended_to_a_file) {
  const std::string path = testing::TempDir() + "process_test_output_" + std::to_string(getpid());
  for (const char* const word : {"one", "two"}) {
    const auto process = shell(
        std::string("echo ") + word,
        ProcessOptions{.argv = {}, .environment = {}, .output_path = path});
    scope_.spawn("wait", wait_for(*process, findings_));
    run();
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "one\ntwo\n");
  std::filesystem::remove(path);
}

TEST_F(Child, environment_is_ours_with_additions) {
  ProcessOptions options;
  options.environment = {{"STAGGER_TEST_VALUE", "a b=c"}};
  const auto process = shell("echo \"$STAGGER_TEST_VALUE\"; echo \"${PATH:+path}\"", options);
  scope_.spawn("read", read_all(*process, findings_));
  scope_.spawn("wait", wait_for(*process, findings_));
  run();
  EXPECT_EQ(findings_.output, "a b=c\npath\n");
}

TEST_F(Child, program_that_cannot_be_run_is_refused_with_the_reason) {
  const auto missing = Process::start(
      real_.context(),
      ProcessOptions{.argv = {"/no/such/program"}, .environment = {}, .output_path = {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::refused);
  EXPECT_EQ(missing.error().detail, "cannot start /no/such/program: No such file or directory");
  const auto directory = Process::start(
      real_.context(), ProcessOptions{.argv = {"/tmp"}, .environment = {}, .output_path = {}});
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().detail, "cannot start /tmp: Permission denied");
}

TEST_F(Child, signals_reach_the_whole_group) {
  // The shell waits for its own child; both must end, or the output would stay open.
  const auto process = shell("sleep 1000 & echo ready; wait");
  scope_.spawn("signal", signal_when_ready(*process, SIGTERM, findings_));
  scope_.spawn("wait", wait_for(*process, findings_));
  run();
  EXPECT_EQ(findings_.codes, std::vector<int>{128 + SIGTERM});
  scope_.spawn("read", read_all(*process, findings_));
  run();
}

TEST_F(Child, dies_with_its_owner) {
  auto process = shell("echo ready; sleep 1000");
  const pid_t id = process->id();
  EXPECT_EQ(kill(id, 0), 0);
  process.reset();
  EXPECT_EQ(kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(Child, inherits_none_of_our_sockets) {
  const auto listener = host_.network.listen(Endpoint{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto process = shell("ls -l /proc/$$/fd");
  scope_.spawn("read", read_all(*process, findings_));
  scope_.spawn("wait", wait_for(*process, findings_));
  run();
  EXPECT_NE(findings_.output.find("/dev/null"), std::string::npos) << findings_.output;
  EXPECT_EQ(findings_.output.find("socket:"), std::string::npos) << findings_.output;
  EXPECT_EQ(findings_.output.find("anon_inode"), std::string::npos) << findings_.output;
}

TEST_F(Child, cancelled_wait_leaves_the_process_running) {
  const auto process = shell("sleep 1000");
  TaskScope waiting(real_.executor(), "waiting");
  waiting.spawn("wait", wait_for(*process, findings_));
  scope_.spawn("cancel", cancel_at(host_.clock, soon(5ms), waiting));
  run();
  EXPECT_EQ(waiting.size(), 0U);
  EXPECT_TRUE(findings_.codes.empty());
  EXPECT_EQ(kill(process->id(), 0), 0);
}

using SignalArrival = Child;

TEST_F(SignalArrival, is_a_value) {
  Signals signals(real_.context());
  scope_.spawn("signals", await_signals(signals, 2, findings_));
  scope_.spawn("raise", raise_at(host_.clock, soon(5ms), SIGTERM));
  scope_.spawn("raise", raise_at(host_.clock, soon(10ms), SIGINT));
  run();
  EXPECT_EQ(findings_.signals, (std::vector<int>{SIGTERM, SIGINT}));
}

TEST_F(SignalArrival, waiting_for_it_can_be_cancelled) {
  Signals signals(real_.context());
  TaskScope waiting(real_.executor(), "waiting");
  waiting.spawn("signals", await_signals(signals, 1, findings_));
  scope_.spawn("cancel", cancel_at(host_.clock, soon(5ms), waiting));
  run();
  EXPECT_EQ(waiting.size(), 0U);
  EXPECT_TRUE(findings_.signals.empty());
}

}  // namespace
}  // namespace stagger
