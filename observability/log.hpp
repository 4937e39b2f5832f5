#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// One structured line per event: time, level, component, message, then key=value pairs.
namespace stagger {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// One `key=value` of a line. Values with spaces or quotes are printed quoted.
struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(text) {}
  LogField(std::string_view name, double number);
  template <class Integer>
    requires std::integral<Integer>
  LogField(std::string_view name, Integer number) : key(name), value(std::to_string(number)) {}
};

/// Writes events to a sink.
///
/// For:     everything a person may want to read later; reached through Host.
/// Owner:   main (one per process), or the simulated node. Outlives every task.
/// Thread:  any; lines are handed to the sink whole, one at a time (one of the places that may hold a mutex).
/// Cancel:  nothing waits.
/// Failure: none; a sink that cannot write loses the line.
class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  /// Text of "now" for the start of a line: wall time in a process, virtual time in a simulation.
  using TimeText = std::function<std::string()>;

  Log(std::string component, LogLevel level_min, TimeText time_text, Sink sink);

  void debug(std::string_view message, const std::vector<LogField>& fields = {});
  void info(std::string_view message, const std::vector<LogField>& fields = {});
  void warning(std::string_view message, const std::vector<LogField>& fields = {});
  void error(std::string_view message, const std::vector<LogField>& fields = {});

  /// Logs at `level` unless the last line with this `key` said the same: for reasons that are re-evaluated often.
  void if_changed(
      const std::string& key,
      LogLevel level,
      std::string_view message,
      const std::vector<LogField>& fields = {});

 private:
  void write(LogLevel level, std::string_view message, const std::vector<LogField>& fields);

  std::string component_;
  LogLevel level_min_;
  TimeText time_text_;
  Sink sink_;
  std::map<std::string, std::string> last_by_key_;
};

/// The line without its time: "warning ps worker_silent rank=3 group=2". Exposed for tests.
std::string format_line(
    LogLevel level,
    std::string_view component,
    std::string_view message,
    const std::vector<LogField>& fields);

}  // namespace stagger
