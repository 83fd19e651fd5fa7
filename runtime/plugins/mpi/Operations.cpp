// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/mpi/Operations.h"

#include "runtime/plugins/Plugin.h"
#include "runtime/support/Types.h"

#include <cmath>
#include <utility>

using shardc::rt::BFloat16, shardc::rt::Float16, shardc::rt::toBFloat16, shardc::rt::toFloat,
    shardc::rt::toFloat16;

namespace shardc::plugin {

namespace {

/// How an element is stored and computed with. 16-bit floats are rounded to nearest, ties to even,
/// after every operation on two partial results.
struct Single {
  using Stored = float;
  static float load(float x) { return x; }
  static float store(float x) { return x; }
};
struct Double {
  using Stored = double;
  static double load(double x) { return x; }
  static double store(double x) { return x; }
};
struct Brain {
  using Stored = BFloat16;
  static float load(BFloat16 x) { return toFloat(x); }
  static BFloat16 store(float x) { return toBFloat16(x); }
};
struct Half {
  using Stored = Float16;
  static float load(Float16 x) { return toFloat(x); }
  static Float16 store(float x) { return toFloat16(x); }
};
/// Narrow integers wrap around. In Open MPI 4.1 their sums stay at the largest value on CPUs with
/// AVX.
template <typename T> struct Narrow {
  using Stored = T;
  static uint32_t load(T x) { return x; }
  static T store(uint32_t x) { return T(x); }
};
using Byte = Narrow<uint8_t>;
using Short = Narrow<uint16_t>;

struct Sum {
  template <typename T> static T apply(T a, T b) { return a + b; }
};
struct Product {
  template <typename T> static T apply(T a, T b) { return a * b; }
};
// A NaN wins. Of two zeros the negative one is less, so that the order of ranks does not matter.
struct Least {
  template <typename T> static T apply(T a, T b) {
    if (a == b)
      return std::signbit(b) ? b : a;
    return b < a || b != b ? b : a;
  }
};
struct Greatest {
  template <typename T> static T apply(T a, T b) {
    if (a == b)
      return std::signbit(b) ? a : b;
    return b > a || b != b ? b : a;
  }
};

template <typename Element, typename Apply>
void reduce(void *from, void *into, int *count, MPI_Datatype *) {
  auto *a = static_cast<const typename Element::Stored *>(from);
  auto *b = static_cast<typename Element::Stored *>(into);
  for (int i = 0; i < *count; ++i)
    b[i] = Element::store(Apply::apply(Element::load(a[i]), Element::load(b[i])));
}

/// The operations of our own, by what they reduce.
struct Own {
  shardrt_type type;
  int32_t reduction;
  MPI_User_function *function;
  MPI_Op op = MPI_OP_NULL;
};
Own owns[] = {
    {SHARDRT_F32, SHARDRT_MIN, reduce<Single, Least>},
    {SHARDRT_F32, SHARDRT_MAX, reduce<Single, Greatest>},
    {SHARDRT_F64, SHARDRT_MIN, reduce<Double, Least>},
    {SHARDRT_F64, SHARDRT_MAX, reduce<Double, Greatest>},
    {SHARDRT_BF16, SHARDRT_SUM, reduce<Brain, Sum>},
    {SHARDRT_BF16, SHARDRT_PROD, reduce<Brain, Product>},
    {SHARDRT_BF16, SHARDRT_MIN, reduce<Brain, Least>},
    {SHARDRT_BF16, SHARDRT_MAX, reduce<Brain, Greatest>},
    {SHARDRT_F16, SHARDRT_SUM, reduce<Half, Sum>},
    {SHARDRT_F16, SHARDRT_PROD, reduce<Half, Product>},
    {SHARDRT_F16, SHARDRT_MIN, reduce<Half, Least>},
    {SHARDRT_F16, SHARDRT_MAX, reduce<Half, Greatest>},
    {SHARDRT_I16, SHARDRT_SUM, reduce<Short, Sum>},
    {SHARDRT_I16, SHARDRT_PROD, reduce<Short, Product>},
    {SHARDRT_I8, SHARDRT_SUM, reduce<Byte, Sum>},
    {SHARDRT_I8, SHARDRT_PROD, reduce<Byte, Product>},
    {SHARDRT_U8, SHARDRT_SUM, reduce<Byte, Sum>},
    {SHARDRT_U8, SHARDRT_PROD, reduce<Byte, Product>},
};

/// What MPI's own operations take. Sums and products are those of unsigned integers, which wrap
/// around.
MPI_Datatype nativeType(shardrt_type type, int32_t reduction) {
  bool isSigned = reduction == SHARDRT_MIN || reduction == SHARDRT_MAX;
  switch (type) {
  case SHARDRT_F32:
    return MPI_FLOAT;
  case SHARDRT_F64:
    return MPI_DOUBLE;
  case SHARDRT_I64:
    return isSigned ? MPI_INT64_T : MPI_UINT64_T;
  case SHARDRT_I32:
    return isSigned ? MPI_INT32_T : MPI_UINT32_T;
  case SHARDRT_I16:
    return isSigned ? MPI_INT16_T : MPI_UINT16_T;
  case SHARDRT_I8:
    return isSigned ? MPI_INT8_T : MPI_UINT8_T;
  default:
    return MPI_UINT8_T;
  }
}

} // namespace

MPI_Datatype movedType(int64_t bytes) {
  switch (bytes) {
  case 8:
    return MPI_UINT64_T;
  case 4:
    return MPI_UINT32_T;
  case 2:
    return MPI_UINT16_T;
  default:
    return MPI_UINT8_T;
  }
}

Operation operationOf(shardrt_type type, int32_t reduction) {
  if (reduction == SHARDRT_AVG) {
    // The sum of an average may not wrap around, or overflow, where the average does not.
    if (type != SHARDRT_F32 && type != SHARDRT_F64 && type != SHARDRT_BF16)
      return {};
    reduction = SHARDRT_SUM;
  }
  for (const Own &own : owns)
    if (own.type == type && own.reduction == reduction)
      return {movedType(elementBytes(type)), own.op};
  bool any = reduction == SHARDRT_SUM || reduction == SHARDRT_MAX;
  switch (type) {
  case SHARDRT_F16:
  case SHARDRT_BF16:
    return {};
  case SHARDRT_BOOL: // or, and of 0 and 1
    return {MPI_UINT8_T, any ? MPI_MAX : MPI_MIN};
  default:
    return {nativeType(type, reduction), reduction == SHARDRT_SUM    ? MPI_SUM
                                         : reduction == SHARDRT_PROD ? MPI_PROD
                                         : reduction == SHARDRT_MIN  ? MPI_MIN
                                                                     : MPI_MAX};
  }
}

void average(shardrt_type type, void *sums, int64_t count, int32_t members) {
  auto divide = [&](auto *values, auto load, auto store) {
    for (int64_t i = 0; i < count; ++i)
      values[i] = store(load(values[i]) / decltype(load(values[i]))(members));
  };
  if (type == SHARDRT_F64)
    divide(static_cast<double *>(sums), Double::load, Double::store);
  else if (type == SHARDRT_F32)
    divide(static_cast<float *>(sums), Single::load, Single::store);
  else
    divide(static_cast<BFloat16 *>(sums), Brain::load, Brain::store);
}

void makeOperations() {
  for (Own &own : owns)
    MPI_Op_create(own.function, 1, &own.op);
}
void freeOperations() {
  for (Own &own : owns)
    MPI_Op_free(&own.op);
}

} // namespace shardc::plugin
