#include "observability/log.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stagger {

namespace {

std::string_view to_text(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

bool is_printable(char letter) {
  return letter >= ' ' && letter <= '~';
}

bool is_plain(char letter) {
  return is_printable(letter) && letter != ' ' && letter != '"' && letter != '=' && letter != '\\';
}

void append_escaped(std::string& line, char letter) {
  switch (letter) {
    case '\n':
      line += "\\n";
      return;
    case '\r':
      line += "\\r";
      return;
    case '\t':
      line += "\\t";
      return;
    case '"':
      line += "\\\"";
      return;
    case '\\':
      line += "\\\\";
      return;
    default:
      break;
  }
  if (is_printable(letter)) {
    line += letter;
  } else {
    // Beyond ASCII too: terminals act on C1 controls, and bidirectional marks reorder what a person
    // reads.
    line += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
  }
}

void append_word(std::string& line, std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
    line += word;
    return;
  }
  line += '"';
  for (const char letter : word)
    append_escaped(line, letter);
  line += '"';
}

}  // namespace

LogField::LogField(std::string_view name, double number)
    : key(name), value(fmt::format("{:.9g}", number)) {}

std::string format_line(
    LogLevel level,
    std::string_view component,
    std::string_view message,
    const std::vector<LogField>& fields) {
  std::string line(to_text(level));
  line += ' ';
  append_word(line, component);
  line += ' ';
  append_word(line, message);
  for (const LogField& field : fields) {
    line += ' ';
    append_word(line, field.key);
    line += '=';
    append_word(line, field.value);
  }
  return line;
}

Log::Log(std::string component, LogLevel level_min, TimeText time_text, Sink sink)
    : component_(std::move(component)),
      level_min_(level_min),
      time_text_(std::move(time_text)),
      sink_(std::move(sink)) {}

void Log::debug(std::string_view message, const std::vector<LogField>& fields) {
  write(LogLevel::debug, message, fields);
}

void Log::info(std::string_view message, const std::vector<LogField>& fields) {
  write(LogLevel::info, message, fields);
}

void Log::warning(std::string_view message, const std::vector<LogField>& fields) {
  write(LogLevel::warning, message, fields);
}

void Log::error(std::string_view message, const std::vector<LogField>& fields) {
  write(LogLevel::error, message, fields);
}

void Log::if_changed(
    const std::string& key,
    LogLevel level,
    std::string_view message,
    const std::vector<LogField>& fields) {
  if (level < level_min_) return;
  const std::string text = format_line(level, component_, message, fields);
  {
    const std::scoped_lock lock(mutex_);
    if (last_by_key_.size() >= keys_max && !last_by_key_.contains(key)) last_by_key_.clear();
    std::string& last = last_by_key_[key];
    if (last == text) return;
    last = text;
  }
  hand_over(text);
}

void Log::write(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
  if (level < level_min_) return;
  hand_over(format_line(level, component_, message, fields));
}

void Log::hand_over(const std::string& line) {
  const std::string timed = time_text_() + ' ' + line;
  const std::scoped_lock lock(mutex_);
  sink_(timed);
}

}  // namespace stagger
