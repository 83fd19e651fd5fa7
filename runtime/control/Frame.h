// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages on a connection after the handshake: length (4 bytes, little endian), body, and a tag
// over the number of the message on this connection, the length and the body. A message that was
// changed, left out, sent again or sent back does not fit its tag.
#ifndef SHARDC_RUNTIME_CONTROL_FRAME_H
#define SHARDC_RUNTIME_CONTROL_FRAME_H

#include "runtime/control/Secret.h"

namespace shardc::rt {

class FrameWriter {
public:
  explicit FrameWriter(const Key &key) : key(key) {}
  void append(std::string &out, std::string_view body);

private:
  Key key;
  uint64_t number = 0;
};

class FrameReader {
public:
  explicit FrameReader(const Key &key) : key(key) {}

  enum class Result : uint8_t { More, Message, TooLong, Forged };
  /// Takes what has arrived.
  void feed(std::string_view bytes);
  /// The next message's body, valid until the next feed.
  Result next(std::string_view &body);
  /// Longer ones are errors.
  void setLimit(size_t bytes) { limit = bytes; }

private:
  Key key;
  uint64_t number = 0;
  size_t limit = 1 << 16;
  size_t used = 0; ///< bytes of the buffer that have been returned
  std::string buffer;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_FRAME_H
