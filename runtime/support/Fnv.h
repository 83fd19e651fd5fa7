// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FNV-1a (Fowler, Noll, Vo), 64 bits: a quick hash of what processes compare. It finds mistakes; it
// does not resist those who look for collisions.
#ifndef SHARDC_RUNTIME_SUPPORT_FNV_H
#define SHARDC_RUNTIME_SUPPORT_FNV_H

#include <cstddef>
#include <cstdint>

namespace shardc::rt {

class Fnv {
public:
  /// The bytes of a number, the lowest first.
  template <typename Number> void add(Number number) {
    for (size_t byte = 0; byte < sizeof number; ++byte)
      addWhole(uint64_t(number) >> (8 * byte) & 0xff);
  }
  /// A number in one step, as if it were a byte: faster where there are many.
  void addWhole(uint64_t number) { hash = (hash ^ number) * 0x100000001b3ull; }
  uint64_t value() const { return hash; }

private:
  uint64_t hash = 0xcbf29ce484222325ull;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_FNV_H
