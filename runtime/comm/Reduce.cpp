// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Reduce.h"

#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace shardc::rt {

namespace {

/// Elements per block: sources, accumulator and destinations of a block stay in the first-level
/// cache.
constexpr size_t blockElements = 512;

/// How a stored element is accumulated: 16-bit floats in f32, integers in their unsigned form (wrap
/// around is defined) except for avg, whose sum must not wrap in a narrow type.
template <typename T> struct Plain {
  using Stored = T;
  using Acc = T;
  static Acc load(T x) { return x; }
  static T store(Acc x) { return x; }
};
template <typename T> struct Wide {
  using Stored = T;
  using Acc = int64_t;
  static Acc load(T x) { return x; }
  static T store(Acc x) { return static_cast<T>(x); }
};
struct Half {
  using Stored = Float16;
  using Acc = float;
  static Acc load(Float16 x) { return toFloat(x); }
  static Float16 store(Acc x) { return toFloat16(x); }
};
struct Brain {
  using Stored = BFloat16;
  using Acc = float;
  static Acc load(BFloat16 x) { return toFloat(x); }
  static BFloat16 store(Acc x) { return toBFloat16(x); }
};

template <typename A> A wrap(A a, A b, bool multiply) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::conditional_t<(sizeof(A) < 4), uint32_t, std::make_unsigned_t<A>>;
    return static_cast<A>(multiply ? U(a) * U(b) : U(a) + U(b));
  } else {
    return multiply ? a * b : a + b;
  }
}

struct Sum {
  template <typename A> static A apply(A a, A b) { return wrap(a, b, false); }
  template <typename A> static A finish(A a, size_t) { return a; }
};
struct Avg : Sum {
  template <typename A> static A finish(A a, size_t n) { return a / static_cast<A>(n); }
};
struct Prod {
  template <typename A> static A apply(A a, A b) { return wrap(a, b, true); }
  template <typename A> static A finish(A a, size_t) { return a; }
};
// A NaN on either side stays: comparisons with it are false, x != x is true only for it.
struct Min {
  template <typename A> static A apply(A a, A b) { return b < a || b != b ? b : a; }
  template <typename A> static A finish(A a, size_t) { return a; }
};
struct Max {
  template <typename A> static A apply(A a, A b) { return b > a || b != b ? b : a; }
  template <typename A> static A finish(A a, size_t) { return a; }
};

template <typename Element, typename Op>
void reduce(std::span<const void *const> sources, std::span<void *const> destinations,
            size_t count) {
  using T = typename Element::Stored;
  using A = typename Element::Acc;
  A acc[blockElements];
  T result[blockElements];
  for (size_t begin = 0; begin < count; begin += blockElements) {
    size_t n = std::min(blockElements, count - begin);
    const T *first = static_cast<const T *>(sources[0]) + begin;
    for (size_t i = 0; i < n; ++i)
      acc[i] = Element::load(first[i]);
    for (size_t s = 1; s < sources.size(); ++s) {
      const T *source = static_cast<const T *>(sources[s]) + begin;
      for (size_t i = 0; i < n; ++i)
        acc[i] = Op::apply(acc[i], Element::load(source[i]));
    }
    for (size_t i = 0; i < n; ++i)
      result[i] = Element::store(Op::finish(acc[i], sources.size()));
    for (void *destination : destinations)
      std::memcpy(static_cast<T *>(destination) + begin, result, n * sizeof(T));
  }
}

template <typename Element> ReduceFn pick(uint32_t reduction) {
  using Average = std::conditional_t<std::is_integral_v<typename Element::Stored> &&
                                         sizeof(typename Element::Stored) < 8,
                                     Wide<typename Element::Stored>, Element>;
  switch (reduction) {
  case SHARDRT_SUM:
    return reduce<Element, Sum>;
  case SHARDRT_AVG:
    return reduce<Average, Avg>;
  case SHARDRT_MIN:
    return reduce<Element, Min>;
  case SHARDRT_MAX:
    return reduce<Element, Max>;
  case SHARDRT_PROD:
    return reduce<Element, Prod>;
  default:
    return nullptr;
  }
}

/// bool: or, and are max, min of 0 and 1.
ReduceFn pickBool(uint32_t reduction) {
  switch (reduction) {
  case SHARDRT_SUM:
  case SHARDRT_MAX:
    return reduce<Plain<uint8_t>, Max>;
  case SHARDRT_PROD:
  case SHARDRT_MIN:
    return reduce<Plain<uint8_t>, Min>;
  default:
    return nullptr;
  }
}

} // namespace

ReduceFn reduceFunction(shardrt_type type, uint32_t reduction) {
  switch (type) {
  case SHARDRT_F32:
    return pick<Plain<float>>(reduction);
  case SHARDRT_F64:
    return pick<Plain<double>>(reduction);
  case SHARDRT_F16:
    return pick<Half>(reduction);
  case SHARDRT_BF16:
    return pick<Brain>(reduction);
  case SHARDRT_I64:
    return pick<Plain<int64_t>>(reduction);
  case SHARDRT_I32:
    return pick<Plain<int32_t>>(reduction);
  case SHARDRT_I16:
    return pick<Plain<int16_t>>(reduction);
  case SHARDRT_I8:
    return pick<Plain<int8_t>>(reduction);
  case SHARDRT_U8:
    return pick<Plain<uint8_t>>(reduction);
  case SHARDRT_BOOL:
    return pickBool(reduction);
  default:
    return nullptr;
  }
}

} // namespace shardc::rt
