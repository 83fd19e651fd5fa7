// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers that are the same on every machine: standard distributions differ between
// libraries.

#ifndef SHARDC_SUPPORT_SPLITMIX_H
#define SHARDC_SUPPORT_SPLITMIX_H

#include <cstdint>

namespace shardc {

/// The number that splitmix64 makes of a state, which advances (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014).
inline uint64_t splitMix64(uint64_t &state) {
  uint64_t x = state += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

} // namespace shardc

#endif // SHARDC_SUPPORT_SPLITMIX_H
