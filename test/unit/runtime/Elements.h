// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of every type as doubles, by definitions that do not share code with the runtime.
#ifndef SHARDC_TEST_UNIT_RUNTIME_ELEMENTS_H
#define SHARDC_TEST_UNIT_RUNTIME_ELEMENTS_H

#include "runtime/include/shardrt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace test {

/// IEEE 754: (-1)^s 2^(e - bias) 1.m, subnormals 2^(1 - bias) 0.m.
inline double decodeFloat(unsigned bits, int exponentBits, int mantissaBits) {
  unsigned mantissa = bits & ((1u << mantissaBits) - 1);
  unsigned exponent = (bits >> mantissaBits) & ((1u << exponentBits) - 1);
  double sign = bits >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  int bias = (1 << (exponentBits - 1)) - 1;
  if (exponent == (1u << exponentBits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  double fraction = double(mantissa) / double(1u << mantissaBits);
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, int(exponent) - bias);
}
inline double decodeHalf(shardrt_type type, uint16_t bits) {
  return type == SHARDRT_F16 ? decodeFloat(bits, 5, 10) : decodeFloat(bits, 8, 7);
}

/// The nearest 16-bit float, ties to the even mantissa, by search among all of them.
inline uint16_t encodeHalf(shardrt_type type, double value) {
  static std::vector<std::pair<double, uint16_t>> tables[2];
  auto &table = tables[type == SHARDRT_F16];
  if (table.empty()) {
    for (unsigned bits = 0; bits < 0x8000; ++bits)
      if (double x = decodeHalf(type, uint16_t(bits)); std::isfinite(x))
        table.push_back({x, uint16_t(bits)});
    // Infinity takes the place of the next power of two, as rounding does.
    table.push_back({type == SHARDRT_F16 ? 65536.0 : std::ldexp(1.0, 128),
                     uint16_t(type == SHARDRT_F16 ? 0x7c00 : 0x7f80)});
  }
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return uint16_t(table.back().second | 1);
  auto above = std::lower_bound(table.begin(), table.end(), std::pair(magnitude, uint16_t(0)));
  if (above == table.end())
    return sign | table.back().second;
  if (above == table.begin())
    return sign | above->second;
  auto below = above - 1;
  double up = above->first - magnitude, down = magnitude - below->first;
  bool takeAbove = up < down || (up == down && above->second % 2 == 0);
  return sign | (takeAbove ? above : below)->second;
}

inline double get(shardrt_type type, const void *data, size_t i) {
  switch (type) {
  case SHARDRT_F32:
    return static_cast<const float *>(data)[i];
  case SHARDRT_F64:
    return static_cast<const double *>(data)[i];
  case SHARDRT_F16:
  case SHARDRT_BF16:
    return decodeHalf(type, static_cast<const uint16_t *>(data)[i]);
  case SHARDRT_I64:
    return double(static_cast<const int64_t *>(data)[i]);
  case SHARDRT_I32:
    return static_cast<const int32_t *>(data)[i];
  case SHARDRT_I16:
    return static_cast<const int16_t *>(data)[i];
  case SHARDRT_I8:
    return static_cast<const int8_t *>(data)[i];
  default:
    return static_cast<const uint8_t *>(data)[i];
  }
}

/// Stores the value converted as C does it; 16-bit floats rounded to nearest.
inline void set(shardrt_type type, void *data, size_t i, double value) {
  switch (type) {
  case SHARDRT_F32:
    static_cast<float *>(data)[i] = float(value);
    break;
  case SHARDRT_F64:
    static_cast<double *>(data)[i] = value;
    break;
  case SHARDRT_F16:
  case SHARDRT_BF16:
    static_cast<uint16_t *>(data)[i] = encodeHalf(type, value);
    break;
  case SHARDRT_I64:
    static_cast<int64_t *>(data)[i] = int64_t(value);
    break;
  case SHARDRT_I32:
    static_cast<int32_t *>(data)[i] = int32_t(value);
    break;
  case SHARDRT_I16:
    static_cast<int16_t *>(data)[i] = int16_t(value);
    break;
  case SHARDRT_I8:
    static_cast<int8_t *>(data)[i] = int8_t(value);
    break;
  default:
    static_cast<uint8_t *>(data)[i] = uint8_t(value);
  }
}

/// Values that every type holds exactly, and sums and products of a few of which do too.
inline double smallValue(shardrt_type type, unsigned seed) {
  unsigned x = seed * 2654435761u;
  x ^= x >> 15;
  if (type == SHARDRT_BOOL)
    return x & 1;
  if (type == SHARDRT_U8)
    return 1 + x % 3;
  return int(x % 7) - 3;
}

inline const std::vector<shardrt_type> &allTypes() {
  static const std::vector<shardrt_type> types = {
      SHARDRT_F32, SHARDRT_F64, SHARDRT_F16, SHARDRT_BF16, SHARDRT_I64,
      SHARDRT_I32, SHARDRT_I16, SHARDRT_I8,  SHARDRT_U8,   SHARDRT_BOOL};
  return types;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_ELEMENTS_H
