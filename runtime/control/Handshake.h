// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the two ends of a new connection show each other that they know the secret, before anything
// else that they send is looked at. Four messages of fixed length:
//
//   caller  hello      "SHARDRT", version, nonce
//   callee  challenge  "SHARDRT", version, nonce
//   caller  proof      tag over "caller" and both nonces
//   callee  proof      tag over "callee" and both nonces; zeros: the caller's was wrong
//
// The keys of what follows are made of the secret and both nonces, one for each direction.
#ifndef SHARDC_RUNTIME_CONTROL_HANDSHAKE_H
#define SHARDC_RUNTIME_CONTROL_HANDSHAKE_H

#include "runtime/control/Secret.h"

namespace shardc::rt {

/// Changes with every change of what ranks send each other.
constexpr unsigned char controlVersion = 1;

class Handshake {
public:
  enum class Side : uint8_t { Caller, Callee };
  enum class Result : uint8_t {
    More,     ///< wants() says how many bytes come next
    Done,     ///< both know the secret
    Stranger, ///< the other end is no control plane
    Version,  ///< it is one of another version (otherVersion)
    Denied,   ///< it knows another secret
  };

  Handshake(Side side, const Key &key);

  /// What this side sends first.
  std::string opening() const;
  /// The length of the next message of the other side.
  size_t wants() const;
  /// Takes a message of that length and appends to `out` what is to be sent, also when the
  /// connection is to be closed after it.
  Result take(std::string_view message, std::string &out);

  unsigned char otherVersion() const { return seenVersion; }
  /// When done.
  Key sendKey() const { return directionKey(side); }
  Key receiveKey() const {
    return directionKey(side == Side::Caller ? Side::Callee : Side::Caller);
  }

private:
  using Nonce = std::array<unsigned char, 32>;
  std::string greeting() const;
  Tag proof(const char *who) const;
  Key directionKey(Side from) const;

  const Side side;
  const Key key;
  Nonce mine, theirs{};
  bool greeted = false;
  unsigned char seenVersion = controlVersion;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_HANDSHAKE_H
