#include "engine/iteration_picture.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace stagger {
namespace {

struct Look {
  char sign;
  std::string_view color;
  std::string_view name;
};

Look look_of(Activity activity) {
  switch (activity) {
    case Activity::forward:
      return {.sign = 'F', .color = "#9ecae1", .name = "forward"};
    case Activity::backward:
      return {.sign = 'B', .color = "#4292c6", .name = "backward"};
    case Activity::wait:
      return {.sign = '!', .color = "#cb181d", .name = "waits for a reply"};
    case Activity::turn:
      return {.sign = '.', .color = "#e0e0e0", .name = "ready, waits for its turn"};
    case Activity::push:
      return {.sign = '#', .color = "#238b45", .name = "push"};
  }
  return {.sign = '?', .color = "#000000", .name = "unknown"};
}

constexpr Activity activities[] = {
    Activity::forward, Activity::backward, Activity::wait, Activity::turn, Activity::push};

bool on_link(Activity activity) {
  return activity == Activity::turn || activity == Activity::push;
}

struct Extent {
  TimePoint begin = time_point_max;
  TimePoint end;
};

Extent extent_of(std::span<const Timeline> workers) {
  Extent extent;
  for (const Timeline& worker : workers) {
    for (const ActivitySpan& span : worker.spans()) {
      extent.begin = std::min(extent.begin, span.begin);
      extent.end = std::max(extent.end, span.end);
    }
  }
  return extent;
}

/// From 0 to 1 across the picture.
double place(const Extent& extent, TimePoint time) {
  const double whole = to_seconds(extent.end - extent.begin);
  return whole > 0 ? to_seconds(time - extent.begin) / whole : 0.0;
}

/// A push hides the wait of another group: what uses the link is drawn last.
std::string row_text(const Timeline& worker, const Extent& extent, bool link, std::size_t width) {
  constexpr double rounding = 1e-6;  // a cell's own begin is in it
  std::string row(width, ' ');
  for (const Activity activity : activities) {
    if (on_link(activity) != link) continue;
    for (const ActivitySpan& span : worker.spans()) {
      if (span.activity != activity) continue;
      const auto cell = [&](TimePoint time) {
        return static_cast<std::size_t>(
            place(extent, time) * static_cast<double>(width) + rounding);
      };
      const std::size_t first = std::min(cell(span.begin), width - 1);
      const std::size_t last = std::clamp(cell(span.end), first + 1, width);
      std::fill(
          row.begin() + static_cast<std::ptrdiff_t>(first),
          row.begin() + static_cast<std::ptrdiff_t>(last),
          look_of(activity).sign);
    }
  }
  return row;
}

std::string legend_text() {
  std::string text;
  for (const Activity activity : activities)
    text += fmt::format("{} {}   ", look_of(activity).sign, look_of(activity).name);
  return text + "\n";
}

std::string svg_box(double x, double y, double width, double height, std::string_view color) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
      x,
      y,
      width,
      height,
      color);
}

std::string svg_text(double x, double y, std::string_view words) {
  return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", x, y, words);
}

struct Canvas {
  double left = 90;
  double width = 1000;
  double top = 40;
  double strip = 8;  ///< of compute, and of the link below it
  double row = 20;
};

std::string worker_svg(
    const Timeline& worker, const Extent& extent, const Canvas& canvas, std::size_t index) {
  const double y = canvas.top + canvas.row * static_cast<double>(index);
  std::string text = svg_text(8, y + canvas.strip + 4, fmt::format("worker {}", index));
  for (const Activity activity : activities) {
    for (const ActivitySpan& span : worker.spans()) {
      if (span.activity != activity) continue;
      const double x = canvas.left + canvas.width * place(extent, span.begin);
      const double end = canvas.left + canvas.width * place(extent, span.end);
      text += svg_box(
          x,
          y + (on_link(activity) ? canvas.strip : 0.0),
          std::max(end - x, 0.5),
          canvas.strip,
          look_of(activity).color);
    }
  }
  return text;
}

std::string legend_svg(const Canvas& canvas) {
  constexpr double step = 190;
  constexpr double mark = 10;
  std::string text;
  double x = canvas.left;
  for (const Activity activity : activities) {
    text += svg_box(x, 8, mark, mark, look_of(activity).color);
    text += svg_text(x + mark + 4, 8 + mark, look_of(activity).name);
    x += step;
  }
  return text;
}

}  // namespace

std::string picture_text(std::span<const Timeline> workers, std::size_t workers_max) {
  constexpr std::size_t width = 96;
  const Extent extent = extent_of(workers);
  if (workers.empty() || extent.begin > extent.end) return "nothing was recorded\n";
  std::string text = fmt::format(
      "iteration {}, {:.3f} ms across\n",
      workers.front().iteration().value(),
      to_seconds(extent.end - extent.begin) * 1e3);
  const std::size_t drawn = std::min(workers.size(), std::max<std::size_t>(workers_max, 1));
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::size_t worker = i * workers.size() / drawn;
    text += fmt::format("{:>5} |{}|\n", worker, row_text(workers[worker], extent, false, width));
    text += fmt::format("      |{}|\n", row_text(workers[worker], extent, true, width));
  }
  return text + legend_text();
}

std::string picture_svg(std::span<const Timeline> workers) {
  const Canvas canvas;
  const Extent extent = extent_of(workers);
  const double height = canvas.top + canvas.row * static_cast<double>(workers.size()) + canvas.row;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n",
      canvas.left + canvas.width + canvas.row,
      height);
  text += legend_svg(canvas);
  if (!workers.empty() && extent.begin <= extent.end) {
    for (std::size_t index = 0; index < workers.size(); ++index)
      text += worker_svg(workers[index], extent, canvas, index);
    text += svg_text(
        canvas.left,
        height - 4,
        fmt::format(
            "iteration {}, {:.3f} ms across",
            workers.front().iteration().value(),
            to_seconds(extent.end - extent.begin) * 1e3));
  }
  return text + "</svg>\n";
}

}  // namespace stagger
