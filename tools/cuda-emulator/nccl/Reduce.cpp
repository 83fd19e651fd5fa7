// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/nccl/Reduce.h"

#include "runtime/support/Types.h"
#include "tools/cuda-emulator/nccl/Nccl.h"

#include <cmath>
#include <type_traits>

namespace shardc::emulator {

namespace {

using rt::BFloat16;
using rt::Float16;

template <typename T> struct Wide {
  using type = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <> struct Wide<Float16> {
  using type = float;
  static float load(Float16 value) { return rt::toFloat(value); }
  static Float16 store(float value) { return rt::toFloat16(value); }
};
template <> struct Wide<BFloat16> {
  using type = float;
  static float load(BFloat16 value) { return rt::toFloat(value); }
  static BFloat16 store(float value) { return rt::toBFloat16(value); }
};

template <typename T> T combine(T a, T b, int reduction) {
  // Integers wrap around.
  using Exact =
      std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (reduction) {
  case ncclProd:
    return T(Exact(Exact(a) * Exact(b)));
  case ncclMax:
    if constexpr (std::is_floating_point_v<T>)
      return std::fmax(a, b);
    else
      return a < b ? b : a;
  case ncclMin:
    if constexpr (std::is_floating_point_v<T>)
      return std::fmin(a, b);
    else
      return b < a ? b : a;
  default:
    return T(Exact(Exact(a) + Exact(b)));
  }
}

template <typename Function> void withNcclType(int type, Function function) {
  switch (type) {
  case ncclInt8:
    return function(int8_t());
  case ncclUint8:
    return function(uint8_t());
  case ncclInt32:
    return function(int32_t());
  case ncclUint32:
    return function(uint32_t());
  case ncclInt64:
    return function(int64_t());
  case ncclUint64:
    return function(uint64_t());
  case ncclFloat16:
    return function(Float16());
  case ncclFloat32:
    return function(float());
  case ncclFloat64:
    return function(double());
  case ncclBfloat16:
    return function(BFloat16());
  }
}

} // namespace

size_t ncclTypeBytes(int type) {
  size_t bytes = 0;
  withNcclType(type, [&](auto zero) { bytes = sizeof zero; });
  return bytes;
}

void beginReduction(void *data, size_t count, int type, int reduction, int ranks) {
  withNcclType(type, [&](auto zero) {
    using T = decltype(zero);
    using W = typename Wide<T>::type;
    if constexpr (std::is_floating_point_v<W>) {
      auto *values = static_cast<T *>(data);
      W factor = Wide<T>::load(Wide<T>::store(W(1) / W(ranks)));
      for (size_t i = 0; reduction == ncclAvg && i < count; ++i)
        values[i] = Wide<T>::store(Wide<T>::load(values[i]) * factor);
    }
  });
}

void reduceInto(void *into, const void *from, size_t count, int type, int reduction) {
  withNcclType(type, [&](auto zero) {
    using T = decltype(zero);
    auto *target = static_cast<T *>(into);
    auto *source = static_cast<const T *>(from);
    for (size_t i = 0; i < count; ++i)
      target[i] =
          Wide<T>::store(combine(Wide<T>::load(target[i]), Wide<T>::load(source[i]), reduction));
  });
}

void endReduction(void *data, size_t count, int type, int reduction, int ranks) {
  withNcclType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      auto *values = static_cast<T *>(data);
      for (size_t i = 0; reduction == ncclAvg && i < count; ++i)
        values[i] = T(values[i] / T(ranks));
    }
  });
}

} // namespace shardc::emulator
