// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The seal of an artifact: bytes after the end of the shared object, by which `shardrt_open` tells
// a file that was damaged on its way. (Against damage, not against malice: an artifact is code, and
// is trusted like any other program.) A tool that rewrites the object drops the seal, and the check
// with it.
#ifndef SHARDC_RUNTIME_ABI_SEAL_H
#define SHARDC_RUNTIME_ABI_SEAL_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace shardc {

struct ArtifactSeal {
  char magic[8];
  uint64_t bytes;    ///< of the object before the seal
  uint64_t checksum; ///< of these bytes
};

inline constexpr char sealMagic[8] = {'s', 'h', 'a', 'r', 'd', 's', 'u', 'm'};

/// Four sums side by side, each a multiplicative hash of every fourth word: a change of one word
/// always changes its sum, since the multiplier is odd.
inline uint64_t sealChecksum(std::string_view bytes) {
  constexpr uint64_t multiplier = 0x9e3779b97f4a7c15;
  uint64_t sums[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, 32);
    for (int i = 0; i < 4; ++i)
      sums[i] = (sums[i] ^ words[i]) * multiplier;
  }
  for (; at < bytes.size(); ++at)
    sums[0] = (sums[0] ^ static_cast<unsigned char>(bytes[at])) * multiplier;
  uint64_t all = bytes.size();
  for (uint64_t sum : sums)
    all = (all ^ sum ^ (sum >> 29)) * multiplier;
  return all;
}

inline ArtifactSeal makeSeal(std::string_view object) {
  ArtifactSeal seal{{}, object.size(), sealChecksum(object)};
  std::memcpy(seal.magic, sealMagic, sizeof seal.magic);
  return seal;
}

} // namespace shardc

#endif // SHARDC_RUNTIME_ABI_SEAL_H
