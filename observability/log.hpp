#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// One structured line per event: time, level, component, message, then key=value pairs.
namespace stagger {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// One `key=value` of a line. Anything but plain printable ASCII is printed quoted and escaped, so
/// that text from a peer can neither begin a new line nor look like another field.
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
/// Thread:  any; lines are handed to the sink whole, one at a time (one of the places that may hold
/// a mutex). Cancel:  nothing waits. Failure: none; a sink that cannot write loses the line.
class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  /// Text of "now" for the start of a line: wall time in a process, virtual time in a simulation.
  using TimeText = std::function<std::string()>;

  /// The sink gets the line without its newline. Lines below `level_min` are not even formatted.
  Log(std::string component, LogLevel level_min, TimeText time_text, Sink sink);

  void debug(std::string_view message, const std::vector<LogField>& fields = {});
  void info(std::string_view message, const std::vector<LogField>& fields = {});
  void warning(std::string_view message, const std::vector<LogField>& fields = {});
  void error(std::string_view message, const std::vector<LogField>& fields = {});

  /// Logs at `level` unless the last line with this `key` said the same: for reasons that are
  /// re-evaluated often. Keys come from a bounded set (rank, group); beyond `keys_max` of them the
  /// memory starts anew.
  void if_changed(
      const std::string& key,
      LogLevel level,
      std::string_view message,
      const std::vector<LogField>& fields = {});

  static constexpr std::size_t keys_max = 4096;

 private:
  void write(LogLevel level, std::string_view message, const std::vector<LogField>& fields);
  void hand_over(const std::string& line);

  std::string component_;
  LogLevel level_min_;
  TimeText time_text_;
  Sink sink_;
  std::mutex mutex_;  ///< guards the calls of sink_, and last_by_key_
  std::map<std::string, std::string> last_by_key_;
};

/// The line without its time: "warning ps worker_silent rank=3 group=2". Exposed for tests.
std::string format_line(
    LogLevel level,
    std::string_view component,
    std::string_view message,
    const std::vector<LogField>& fields);

}  // namespace stagger
