// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types: sizes, names, and the arithmetic of the 16-bit floating types.
#ifndef SHARDC_RUNTIME_SUPPORT_TYPES_H
#define SHARDC_RUNTIME_SUPPORT_TYPES_H

#include "runtime/include/shardrt.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::rt {

/// 0 for an unknown type.
int64_t typeBytes(shardrt_type type);
/// "?" for an unknown type.
const char *typeName(shardrt_type type);
/// 0 for an unknown name.
shardrt_type typeFromName(std::string_view name);

/// For messages: "timeout".
const char *statusName(shardrt_status status);

/// "f32[8, 16]".
std::string describe(shardrt_type type, const int64_t *extents, size_t rank);
inline std::string describe(shardrt_type type, const std::vector<int64_t> &extents) {
  return describe(type, extents.data(), extents.size());
}

/// Product of extents; 1 for rank 0.
int64_t countElements(const int64_t *extents, size_t rank);
/// The same in bytes, or -1 where an extent is negative or the product overflows.
int64_t checkedBytes(const int64_t *extents, size_t rank, int64_t elementBytes);

/// Writes a number as one element of a type (typeBytes of it): integers are truncated.
void encodeNumber(void *to, shardrt_type type, double value);

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

inline float toFloat(BFloat16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }

/// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
inline BFloat16 toBFloat16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return {uint16_t(nan ? (bits >> 16) | 0x40u : rounded >> 16)};
}

/// Without branches, so that loops of it vectorise. Subnormals are scaled by multiplication: 2^-14
/// * 0.mantissa is (1.mantissa - 1) * 2^-14.
inline float toFloat(Float16 x) {
  uint32_t sign = uint32_t(x.bits & 0x8000u) << 16;
  uint32_t exponent = (x.bits >> 10) & 0x1fu;
  uint32_t mantissa = x.bits & 0x3ffu;
  uint32_t normal = ((exponent + (exponent == 31 ? 224 : 112)) << 23) | (mantissa << 13);
  float subnormal =
      (std::bit_cast<float>(0x3f800000u | (mantissa << 13)) - 1.0f) * 6.103515625e-05f;
  uint32_t magnitude = exponent == 0 ? std::bit_cast<uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | magnitude);
}

/// Round to nearest, ties to even; overflow gives infinity, a NaN stays a NaN.
inline Float16 toFloat16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: rebias the exponent and round at bit 13 (a carry into the exponent is right).
  uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 0.5 lines the mantissa up at 2^-24, with the hardware's rounding.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result; // 65520 and above
  result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result; // NaN
  return {uint16_t(sign | result)};
}

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_TYPES_H
