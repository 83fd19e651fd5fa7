// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What generated code calls of mathematics: libdevice's functions, in terms of libm, and what code
// generation for the host calls by itself.
#include "tools/cuda-emulator/Block.h"
#include "tools/cuda-emulator/Halves.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace shardc::emulator {
namespace {

template <typename T> T reciprocalRoot(T x) { return T(1) / std::sqrt(x); }
template <typename T> T reciprocalCubeRoot(T x) { return T(1) / std::cbrt(x); }
template <typename T> T saturate(T x) { return x > 0 ? (x < 1 ? x : T(1)) : T(0); }
template <typename T> T power10(T x) { return std::pow(T(10), x); }
template <typename T> T powerInt(T x, int n) { return T(std::pow(double(x), n)); }
template <typename T> T scale(T x, int n) { return std::ldexp(x, n); }
template <typename T> int isNan(T x) { return std::isnan(x); }
template <typename T> int isInf(T x) { return std::isinf(x); }
template <typename T> int isFinite(T x) { return std::isfinite(x); }
template <typename T> int signBit(T x) { return std::signbit(x); }
template <typename T> T cosPi(T x) { return T(std::cos(M_PI * std::fmod(double(x), 2.0))); }
template <typename T> T sinPi(T x) { return T(std::sin(M_PI * std::fmod(double(x), 2.0))); }
template <typename T> T normalCdf(T x) { return T(0.5 * std::erfc(-double(x) * M_SQRT1_2)); }
template <typename T> T divide(T x, T y) { return x / y; }

/// The x whose erf it is: bisection in doubles, then Newton's steps.
double inverseErf(double y) {
  if (!(std::fabs(y) < 1))
    return std::fabs(y) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y)
                             : std::numeric_limits<double>::quiet_NaN();
  double target = std::fabs(y), low = 0, high = 6;
  for (int i = 0; i < 60; ++i) {
    double middle = 0.5 * (low + high);
    // Close to 1 the complement keeps the digits.
    bool below = target < 0.5 ? std::erf(middle) < target : std::erfc(middle) > 1 - target;
    (below ? low : high) = middle;
  }
  return std::copysign(0.5 * (low + high), y);
}
template <typename T> T inverseErfOf(T y) { return T(inverseErf(double(y))); }

// Values of 16 bits go through the low bits of a register for values of f32.
float lowBits(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint16_t bitsOf(float value) { return uint16_t(std::bit_cast<uint32_t>(value)); }
float truncateToBf16(float x) { return lowBits(toBf16(x)); }
float truncateDoubleToBf16(double x) { return lowBits(toBf16(x)); }
float truncateToF16(float x) { return lowBits(toF16(x)); }
float truncateDoubleToF16(double x) { return lowBits(toF16(x)); }
float extendF16(float x) { return fromF16(bitsOf(x)); }
float extendBf16(float x) { return fromBf16(bitsOf(x)); }

} // namespace

std::vector<std::pair<const char *, void *>> mathFunctions() {
  std::vector<std::pair<const char *, void *>> out;
#define BOTH_AS(name, function)                                                                    \
  out.push_back({"__nv_" #name, addressOf<double(double)>(&function)});                            \
  out.push_back({"__nv_" #name "f", addressOf<float(float)>(&function)});
#define PLAIN(name)                                                                                \
  BOTH_AS(name, std::name)                                                                         \
  out.push_back({#name, addressOf<double(double)>(&std::name)});                                   \
  out.push_back({#name "f", addressOf<float(float)>(&std::name)});
#define BOTH_OF_TWO_AS(name, function)                                                             \
  out.push_back({"__nv_" #name, addressOf<double(double, double)>(&function)});                    \
  out.push_back({"__nv_" #name "f", addressOf<float(float, float)>(&function)});
#define PLAIN_OF_TWO(name)                                                                         \
  BOTH_OF_TWO_AS(name, std::name)                                                                  \
  out.push_back({#name, addressOf<double(double, double)>(&std::name)});                           \
  out.push_back({#name "f", addressOf<float(float, float)>(&std::name)});
  PLAIN(exp)
  PLAIN(exp2)
  PLAIN(expm1)
  PLAIN(log)
  PLAIN(log2)
  PLAIN(log10)
  PLAIN(log1p)
  PLAIN(sin)
  PLAIN(cos)
  PLAIN(tan)
  PLAIN(asin)
  PLAIN(acos)
  PLAIN(atan)
  PLAIN(sinh)
  PLAIN(cosh)
  PLAIN(tanh)
  PLAIN(asinh)
  PLAIN(acosh)
  PLAIN(atanh)
  PLAIN(sqrt)
  PLAIN(cbrt)
  PLAIN(erf)
  PLAIN(erfc)
  PLAIN(lgamma)
  PLAIN(tgamma)
  PLAIN(ceil)
  PLAIN(floor)
  PLAIN(trunc)
  PLAIN(rint)
  PLAIN(nearbyint)
  PLAIN(round)
  PLAIN(fabs)
  PLAIN(logb)
  PLAIN_OF_TWO(pow)
  PLAIN_OF_TWO(atan2)
  PLAIN_OF_TWO(fmod)
  PLAIN_OF_TWO(remainder)
  PLAIN_OF_TWO(hypot)
  PLAIN_OF_TWO(fmin)
  PLAIN_OF_TWO(fmax)
  PLAIN_OF_TWO(fdim)
  PLAIN_OF_TWO(copysign)
  PLAIN_OF_TWO(nextafter)
  BOTH_AS(exp10, power10)
  BOTH_AS(rsqrt, reciprocalRoot)
  BOTH_AS(rcbrt, reciprocalCubeRoot)
  BOTH_AS(saturate, saturate)
  BOTH_AS(cospi, cosPi)
  BOTH_AS(sinpi, sinPi)
  BOTH_AS(normcdf, normalCdf)
  BOTH_AS(erfinv, inverseErfOf)
#undef BOTH_AS
#undef PLAIN
#undef BOTH_OF_TWO_AS
#undef PLAIN_OF_TWO
  std::vector<std::pair<const char *, void *>> more = {
      {"__nv_fma", addressOf<double(double, double, double)>(&std::fma)},
      {"__nv_fmaf", addressOf<float(float, float, float)>(&std::fma)},
      {"fma", addressOf<double(double, double, double)>(&std::fma)},
      {"fmaf", addressOf<float(float, float, float)>(&std::fma)},
      {"exp10", addressOf<double(double)>(&power10)},
      {"exp10f", addressOf<float(float)>(&power10)},
      {"ldexp", addressOf<double(double, int)>(&scale)},
      {"ldexpf", addressOf<float(float, int)>(&scale)},
      {"__powidf2", addressOf<double(double, int)>(&powerInt)},
      {"__powisf2", addressOf<float(float, int)>(&powerInt)},
      {"__nv_powi", addressOf<double(double, int)>(&powerInt)},
      {"__nv_powif", addressOf<float(float, int)>(&powerInt)},
      {"__nv_ldexp", addressOf<double(double, int)>(&scale)},
      {"__nv_ldexpf", addressOf<float(float, int)>(&scale)},
      {"__nv_scalbn", addressOf<double(double, int)>(&scale)},
      {"__nv_scalbnf", addressOf<float(float, int)>(&scale)},
      {"__nv_isnand", addressOf<int(double)>(&isNan)},
      {"__nv_isnanf", addressOf<int(float)>(&isNan)},
      {"__nv_isinfd", addressOf<int(double)>(&isInf)},
      {"__nv_isinff", addressOf<int(float)>(&isInf)},
      {"__nv_isfinited", addressOf<int(double)>(&isFinite)},
      {"__nv_finitef", addressOf<int(float)>(&isFinite)},
      {"__nv_signbitd", addressOf<int(double)>(&signBit)},
      {"__nv_signbitf", addressOf<int(float)>(&signBit)},
      {"__nv_fast_expf", addressOf<float(float)>(&std::exp)},
      {"__nv_fast_exp10f", addressOf<float(float)>(&power10)},
      {"__nv_fast_logf", addressOf<float(float)>(&std::log)},
      {"__nv_fast_log2f", addressOf<float(float)>(&std::log2)},
      {"__nv_fast_log10f", addressOf<float(float)>(&std::log10)},
      {"__nv_fast_sinf", addressOf<float(float)>(&std::sin)},
      {"__nv_fast_cosf", addressOf<float(float)>(&std::cos)},
      {"__nv_fast_tanf", addressOf<float(float)>(&std::tan)},
      {"__nv_fast_powf", addressOf<float(float, float)>(&std::pow)},
      {"__nv_fast_fdividef", addressOf<float(float, float)>(&divide)},
      {"__nv_fsqrt_rn", addressOf<float(float)>(&std::sqrt)},
      {"__nv_dsqrt_rn", addressOf<double(double)>(&std::sqrt)},
      {"__nv_fdiv_rn", addressOf<float(float, float)>(&divide)},
      {"__nv_ddiv_rn", addressOf<double(double, double)>(&divide)},
      {"__truncsfbf2", addressOf(&truncateToBf16)},
      {"__truncdfbf2", addressOf(&truncateDoubleToBf16)},
      {"__truncsfhf2", addressOf(&truncateToF16)},
      {"__truncdfhf2", addressOf(&truncateDoubleToF16)},
      {"__extendhfsf2", addressOf(&extendF16)},
      {"__extendbfsf2", addressOf(&extendBf16)},
      {"memcpy", addressOf<void *(void *, const void *, size_t)>(&std::memcpy)},
      {"memmove", addressOf<void *(void *, const void *, size_t)>(&std::memmove)},
      {"memset", addressOf<void *(void *, int, size_t)>(&std::memset)}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

} // namespace shardc::emulator
