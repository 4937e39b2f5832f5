#include "net/real/process_spawn.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

/// Everything the child needs, made before fork(): after it only async-signal-safe calls are
/// allowed.
struct Recipe {
  std::string program;
  std::vector<char*> argv;
  std::vector<std::string> environment_text;
  std::vector<char*> environment;
  pid_t parent;
  int input;
  int output;
  int error;
  int report;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Error refused(const std::string& what, int number) {
  return Error{
      .code = Errc::refused,
      .detail = "cannot start " + what + ": " + std::generic_category().message(number)};
}

Result<Pipe> open_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return refused(program, errno);
  return Pipe{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    std::string candidate = std::string(directory) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(rest.size(), directory.size() + 1));
  }
  return name;
}

std::vector<std::string> merged_environment(const ProcessOptions& options) {
  std::map<std::string, std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) merged[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : options.environment)
    merged[name] = value;
  std::vector<std::string> lines;
  lines.reserve(merged.size());
  for (const auto& [name, value] : merged)
    lines.emplace_back(name).append("=").append(value);
  return lines;
}

/// exec() takes char*, and changes nothing.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void give_up(int report) {
  const int number = errno;
  static_cast<void>(write(report, &number, sizeof(number)));
  _exit(127);
}

/// Runs in the child.
[[noreturn]] void become(const Recipe& recipe) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(SIGKILL), 0UL, 0UL, 0UL) != 0) {
    give_up(recipe.report);
  }
  if (getppid() != recipe.parent) _exit(127);  // the parent died before we asked to die with it
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP})
    std::signal(number, SIG_DFL);
  if (dup2(recipe.input, STDIN_FILENO) < 0 || dup2(recipe.output, STDOUT_FILENO) < 0 ||
      dup2(recipe.error, STDERR_FILENO) < 0) {
    give_up(recipe.report);
  }
  // A listening socket that leaked into the child would keep its port taken.
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) give_up(recipe.report);
  execve(recipe.program.c_str(), recipe.argv.data(), recipe.environment.data());
  give_up(recipe.report);
}

/// The errno of a failed start, or 0 when the program runs: exec() closes the pipe.
int read_report(int report) {
  int number = 0;
  ssize_t got = 0;
  do {
    got = read(report, &number, sizeof(number));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(number) ? number : 0;
}

Result<pid_t> fork_and_become(const Recipe& recipe, Pipe report) {
  const pid_t child = fork();
  if (child < 0) return refused(recipe.program, errno);
  if (child == 0) become(recipe);
  setpgid(child, child);  // the child does the same: whoever comes first
  report.write.reset();
  const int failure = read_report(report.read.get());
  if (failure == 0) return child;
  int status = 0;
  waitpid(child, &status, 0);
  return refused(recipe.program, failure);
}

}  // namespace

Result<Spawned> spawn_process(const ProcessOptions& options) {
  CHECK(!options.argv.empty(), "a process needs a program");
  CHECK(!options.share_output || !options.output_path.empty(), "stderr needs a file");
  const std::string& name = options.argv.front();
  Result<Pipe> report = open_pipe(name);
  if (!report) return report.error();
  Result<Pipe> output = open_pipe(name);
  if (!output) return output.error();
  const Descriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.valid()) return refused(name, errno);
  Descriptor file;
  if (!options.output_path.empty()) {
    file = Descriptor(
        open(options.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.valid()) return refused(name + " with output to " + options.output_path, errno);
  }
  Recipe recipe{
      .program = find_program(name),
      .argv = pointers_to(options.argv),
      .environment_text = merged_environment(options),
      .environment = {},
      .parent = getpid(),
      .input = input.get(),
      .output = options.share_output ? STDOUT_FILENO
                : file.valid()       ? file.get()
                                     : output->write.get(),
      .error = file.valid() ? file.get() : output->write.get(),
      .report = report->write.get()};
  recipe.environment = pointers_to(recipe.environment_text);
  const Result<pid_t> child = fork_and_become(recipe, std::move(*report));
  if (!child) return child.error();
  Spawned spawned{.id = *child, .output = {}};
  if (!file.valid()) spawned.output = std::move(output->read);
  return spawned;
}

}  // namespace stagger
