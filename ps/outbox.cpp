#include "ps/outbox.hpp"

namespace stagger {

Task<Result<void>> Outbox::write_frames() {
  for (;;) {
    auto item = co_await items_.pop();
    if (!item) co_return Result<void>{};
    if (item->before) item->before(*item);
    const FrameView frame{
        .head = std::as_bytes(std::span(item->head)), .payload = payload_bytes(item->payload)};
    if (const auto sent = co_await connection_.send(frame, stall_max_); !sent) co_return sent;
    if (item->sent) item->sent();
  }
}

}  // namespace stagger
