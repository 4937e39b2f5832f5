#pragma once

#include <string>
#include <string_view>

/// The terminal and the wall clock's text, for logs and progress lines.
namespace stagger {

/// UTC with milliseconds: "2026-01-31T12:00:00.123Z".
std::string wall_time_text();

/// Whether standard output is a terminal.
bool output_is_terminal();

/// One whole line to standard error; lines of several threads do not mix.
void write_error_line(std::string_view line);

}  // namespace stagger
