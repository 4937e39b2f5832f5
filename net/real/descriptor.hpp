#pragma once

#include <utility>

#include <unistd.h>

namespace stagger {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;

  explicit Descriptor(int number) : number_(number) {}

  ~Descriptor() { reset(); }

  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}

  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = other.release();
    }
    return *this;
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool valid() const { return number_ >= 0; }

  int get() const { return number_; }

  int release() { return std::exchange(number_, -1); }

  /// 0, or what close() said.
  int reset() { return valid() ? ::close(release()) : 0; }

 private:
  int number_ = -1;
};

}  // namespace stagger
