// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Handshake.h"

#include <algorithm>

namespace shardc::rt {

namespace {
constexpr std::string_view magic = "SHARDRT";
constexpr size_t greetingBytes = magic.size() + 1 + 32;
constexpr std::string_view
    noProof("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
} // namespace

Handshake::Handshake(Side side, const Key &key) : side(side), key(key) {
  randomBytes(mine.data(), mine.size());
}

std::string Handshake::greeting() const {
  return std::string(magic) + char(controlVersion) + std::string(viewOf(mine));
}

std::string Handshake::opening() const { return side == Side::Caller ? greeting() : ""; }

size_t Handshake::wants() const { return greeted ? 32 : greetingBytes; }

Tag Handshake::proof(const char *who) const {
  bool caller = side == Side::Caller;
  return tagOf(key, {who, viewOf(caller ? mine : theirs), viewOf(caller ? theirs : mine)});
}

Key Handshake::directionKey(Side from) const {
  return proof(from == Side::Caller ? "from the caller" : "from the callee");
}

Handshake::Result Handshake::take(std::string_view message, std::string &out) {
  if (message.size() != wants())
    return Result::Stranger;
  if (!greeted) {
    if (!message.starts_with(magic))
      return Result::Stranger;
    seenVersion = static_cast<unsigned char>(message[magic.size()]);
    if (side == Side::Callee)
      out += greeting();
    if (seenVersion != controlVersion)
      return Result::Version;
    std::copy_n(message.data() + magic.size() + 1, theirs.size(), theirs.begin());
    greeted = true;
    if (side == Side::Caller)
      out += viewOf(proof("caller"));
    return Result::More;
  }
  if (side == Side::Caller)
    return sameTag(proof("callee"), message) ? Result::Done : Result::Denied;
  bool right = sameTag(proof("caller"), message);
  out += right ? viewOf(proof("callee")) : noProof;
  return right ? Result::Done : Result::Denied;
}

} // namespace shardc::rt
