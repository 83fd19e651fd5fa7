// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Frame.h"

#include "runtime/support/Bytes.h"

namespace shardc::rt {

namespace {

constexpr size_t tagBytes = sizeof(Tag);

Tag frameTag(const Key &key, uint64_t number, std::string_view lengthAndBody) {
  ByteWriter position;
  position(number);
  return tagOf(key, {position.bytes, lengthAndBody});
}

} // namespace

void FrameWriter::append(std::string &out, std::string_view body) {
  size_t begin = out.size();
  ByteWriter length;
  length(uint32_t(body.size()));
  out += length.bytes;
  out += body;
  Tag tag = frameTag(key, number++, std::string_view(out).substr(begin));
  out += viewOf(tag);
}

void FrameReader::feed(std::string_view bytes) {
  buffer.erase(0, used);
  used = 0;
  buffer += bytes;
}

FrameReader::Result FrameReader::next(std::string_view &body) {
  std::string_view bytes = std::string_view(buffer).substr(used);
  if (bytes.size() < 4)
    return Result::More;
  uint32_t length = 0;
  ByteReader(bytes.substr(0, 4))(length);
  if (length > limit)
    return Result::TooLong;
  size_t framed = 4 + size_t(length);
  if (bytes.size() < framed + tagBytes)
    return Result::More;
  if (!sameTag(frameTag(key, number, bytes.substr(0, framed)), bytes.substr(framed, tagBytes)))
    return Result::Forged;
  ++number;
  used += framed + tagBytes;
  body = bytes.substr(4, length);
  return Result::Message;
}

} // namespace shardc::rt
