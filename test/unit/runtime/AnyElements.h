// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of all types with any bits, for tests that compare bits.
#ifndef SHARDC_TEST_UNIT_RUNTIME_ANYELEMENTS_H
#define SHARDC_TEST_UNIT_RUNTIME_ANYELEMENTS_H

#include "runtime/support/Types.h"
#include "test/unit/runtime/Elements.h"

#include <cmath>
#include <random>
#include <vector>

namespace test {

inline const std::vector<shardrt_type> types = {SHARDRT_F32, SHARDRT_F64, SHARDRT_F16, SHARDRT_BF16,
                                                SHARDRT_I64, SHARDRT_I32, SHARDRT_I16, SHARDRT_I8,
                                                SHARDRT_U8,  SHARDRT_BOOL};

inline bool isFloat(shardrt_type type) { return type <= SHARDRT_BF16; }

/// Any bits that a type may have, with NaNs, infinities and zeros of both signs among floats.
inline std::vector<uint8_t> anything(shardrt_type type, size_t count, std::mt19937_64 &random) {
  const auto width = size_t(shardc::rt::typeBytes(type));
  std::vector<uint8_t> bytes(count * width);
  for (uint8_t &byte : bytes)
    byte = type == SHARDRT_BOOL ? uint8_t(random() % 2) : uint8_t(random());
  for (size_t i = 0; isFloat(type) && i < count; ++i) {
    const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1.0, -1.5, 3.0};
    if (random() % 2 == 0)
      set(type, bytes.data(), i, special[random() % 8]);
    else if (random() % 2 == 0)
      set(type, bytes.data(), i, double(int(random() % 2001) - 1000) / 7);
  }
  return bytes;
}

inline bool isNan(shardrt_type type, const uint8_t *data, size_t i) {
  return isFloat(type) && std::isnan(get(type, data, i));
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_ANYELEMENTS_H
