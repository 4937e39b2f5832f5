#include "net/real/process.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/real/descriptor.hpp"
#include "net/real/operation.hpp"
#include "net/real/process_spawn.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace asio = boost::asio;

namespace {

/// Of one read_output().
constexpr std::size_t output_bytes_max = 4096;

}  // namespace

struct Process::Started {
  pid_t id;
  Descriptor ending;
  Descriptor output;
};

Result<std::unique_ptr<Process>> Process::start(
    asio::io_context& context, const ProcessOptions& options) {
  Result<Spawned> spawned = spawn_process(options);
  if (!spawned) return spawned.error();
  // glibc 2.36 declares pidfd_open() without C linkage.
  Descriptor ending(static_cast<int>(syscall(SYS_pidfd_open, spawned->id, 0)));
  if (!ending.valid()) {
    const int number = errno;  // descriptors may have run out
    kill(spawned->id, SIGKILL);
    waitpid(spawned->id, nullptr, 0);
    return Error{
        .code = Errc::refused,
        .detail = "cannot watch " + options.argv.front() + ": " +
                  std::generic_category().message(number)};
  }
  return std::unique_ptr<Process>(new Process(
      context,
      Started{
          .id = spawned->id, .ending = std::move(ending), .output = std::move(spawned->output)}));
}

Process::Process(asio::io_context& context, Started started)
    : executor_(context.get_executor()),
      id_(started.id),
      ending_(context, started.ending.release()),
      output_(context) {
  if (started.output.valid()) output_.assign(started.output.release());
}

Process::~Process() {
  signal(SIGKILL);
  if (!exit_code_) reap(0);  // a killed child is gone in no time
}

bool Process::ended() {
  if (!exit_code_) reap(WNOHANG);
  return exit_code_.has_value();
}

Task<int> Process::wait() {
  while (!exit_code_) {
    Operation<> end(executor_);
    ending_.async_wait(asio::posix::stream_descriptor::wait_read, end.handler());
    try {
      co_await end.wait();
    } catch (...) {
      ending_.cancel();
      throw;
    }
    reap(WNOHANG);
  }
  co_return *exit_code_;
}

Task<std::string> Process::read_output() {
  CHECK(output_.is_open(), "the output of this process goes to a file");
  std::string buffer(output_bytes_max, '\0');
  Operation<std::size_t> read(executor_);
  output_.async_read_some(asio::buffer(buffer), read.handler());
  try {
    co_await read.wait();
  } catch (...) {
    output_.cancel();
    throw;
  }
  buffer.resize(read.error() ? 0 : read.value());
  co_return buffer;
}

void Process::signal(int number) {
  if (!exit_code_) static_cast<void>(kill(-id_, number));
}

void Process::reap(int flags) {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(id_, &status, flags);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != id_) return;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace stagger
