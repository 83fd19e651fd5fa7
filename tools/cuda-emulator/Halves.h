// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bits of bf16 and f16, for compilers whose targets have neither.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_HALVES_H
#define SHARDC_TOOLS_CUDA_EMULATOR_HALVES_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace shardc::emulator {

inline float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0)
    return std::copysign(float(fraction) * 0x1p-24f, std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Rounds to nearest, ties to even, a value to `fractionBits` bits behind the first, with the
/// smallest exponent `least` (below it, numbers are subnormal).
inline double roundTo(double value, int fractionBits, int least) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int exponent = std::ilogb(value);
  double unit = std::ldexp(1.0, (exponent < least ? least : exponent) - fractionBits);
  return std::nearbyint(value / unit) * unit; // a quotient of a power of two is exact
}

inline uint16_t toF16(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | 0x7e00;
  double rounded = std::fabs(roundTo(value, 10, -14));
  if (rounded > 65504)
    return sign | 0x7c00;
  if (rounded < 0x1p-14)
    return sign | uint16_t(rounded * 0x1p24);
  int exponent = std::ilogb(rounded);
  return sign | uint16_t((exponent + 15) << 10) |
         uint16_t(std::ldexp(rounded, 10 - exponent) - 1024);
}

inline uint16_t toBf16(double value) {
  if (std::isnan(value))
    return std::signbit(value) ? 0xffc0 : 0x7fc0;
  // A value of eight significant bits is one of f32 too, so that this conversion is exact.
  return uint16_t(std::bit_cast<uint32_t>(float(roundTo(value, 7, -126))) >> 16);
}

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_HALVES_H
