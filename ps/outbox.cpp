#include "ps/outbox.hpp"

namespace stagger {

Task<Result<void>> Outbox::write_frames() {
  for (;;) {
    const auto item = co_await items_.pop();
    if (!item) co_return Result<void>{};
    const FrameView frame{
        .head = std::as_bytes(std::span(item->head)), .payload = payload_bytes(item->payload)};
    if (item->begins) item->begins();
    if (const auto sent = co_await connection_.send(frame, stall_max_); !sent) co_return sent;
    if (item->sent) item->sent();
  }
}

}  // namespace stagger
