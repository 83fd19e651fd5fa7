// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/lt/Product.h"

#include "runtime/support/Types.h"
#include "tools/cuda-emulator/lt/CublasLt.h"

#include <algorithm>
#include <vector>

namespace shardc::emulator {

namespace {

using rt::BFloat16;
using rt::Float16;

template <typename T> struct Element {
  using Sum = double;
  static double load(T value) { return double(value); }
  static T store(double value) { return T(value); }
};
template <> struct Element<Float16> {
  using Sum = float;
  static float load(Float16 value) { return rt::toFloat(value); }
  static Float16 store(float value) { return rt::toFloat16(value); }
};
template <> struct Element<BFloat16> {
  using Sum = float;
  static float load(BFloat16 value) { return rt::toFloat(value); }
  static BFloat16 store(float value) { return rt::toBFloat16(value); }
};

template <typename Function> void withLtType(int type, Function function) {
  switch (type) {
  case CUDA_R_32F:
    return function(float());
  case CUDA_R_64F:
    return function(double());
  case CUDA_R_16F:
    return function(Float16());
  default:
    return function(BFloat16());
  }
}

template <typename T> const T *batchOf(const void *data, const LtMatrix &matrix, int32_t number) {
  return static_cast<const T *>(data) + number * matrix.stride;
}

/// op(X) with one row of `inner` elements behind the other: element (i, j) is at i + j * inner.
template <typename T>
std::vector<typename Element<T>::Sum> widen(const T *data, const LtMatrix &matrix, bool transpose,
                                            uint64_t rows, uint64_t columns) {
  std::vector<typename Element<T>::Sum> wide(rows * columns);
  for (uint64_t j = 0; j < columns; ++j)
    for (uint64_t i = 0; i < rows; ++i)
      wide[j * rows + i] = Element<T>::load(transpose ? data[i * uint64_t(matrix.ld) + j]
                                                      : data[j * uint64_t(matrix.ld) + i]);
  return wide;
}

template <typename T> void multiplyOne(const LtProduct &p, int32_t number) {
  using Sum = typename Element<T>::Sum;
  const uint64_t m = p.d.rows, n = p.d.columns, k = p.transposeA ? p.a.rows : p.a.columns;
  std::vector<Sum> a = widen(batchOf<T>(p.at, p.a, number), p.a, p.transposeA, m, k);
  std::vector<Sum> b = widen(batchOf<T>(p.bt, p.b, number), p.b, p.transposeB, k, n);
  const T *c = batchOf<T>(p.ct, p.c, number);
  T *d = const_cast<T *>(batchOf<T>(p.dt, p.d, number));
  const T *bias = static_cast<const T *>(p.bias);
  std::vector<Sum> sums(m);
  for (uint64_t j = 0; j < n; ++j) {
    std::fill(sums.begin(), sums.end(), Sum(0));
    for (uint64_t l = 0; l < k; ++l) {
      const Sum factor = b[j * k + l];
      const Sum *column = &a[l * m];
      for (uint64_t i = 0; i < m; ++i)
        sums[i] += column[i] * factor;
    }
    for (uint64_t i = 0; i < m; ++i) {
      Sum value = Sum(p.alpha) * sums[i];
      if (p.beta != 0)
        value += Sum(p.beta) * Element<T>::load(c[j * uint64_t(p.c.ld) + i]);
      if (bias)
        value += Element<T>::load(bias[i]);
      d[j * uint64_t(p.d.ld) + i] = Element<T>::store(value);
    }
  }
}

template <typename T> void transformOne(const LtProduct &p, int32_t number) {
  using Sum = typename Element<T>::Sum;
  const T *a = batchOf<T>(p.at, p.a, number);
  const T *b = p.bt ? batchOf<T>(p.bt, p.b, number) : nullptr;
  T *d = const_cast<T *>(batchOf<T>(p.dt, p.d, number));
  for (uint64_t j = 0; j < p.d.columns; ++j)
    for (uint64_t i = 0; i < p.d.rows; ++i) {
      Sum value = Sum(p.alpha) * Element<T>::load(p.transposeA ? a[i * uint64_t(p.a.ld) + j]
                                                               : a[j * uint64_t(p.a.ld) + i]);
      if (b)
        value += Sum(p.beta) * Element<T>::load(b[j * uint64_t(p.b.ld) + i]);
      d[j * uint64_t(p.d.ld) + i] = Element<T>::store(value);
    }
}

} // namespace

size_t LtMatrix::width() const {
  size_t bytes = 0;
  withLtType(type, [&](auto zero) { bytes = sizeof zero; });
  return bytes;
}

void multiply(const LtProduct &p) {
  withLtType(p.d.type, [&](auto zero) {
    for (int32_t number = 0; number < p.d.batch; ++number)
      multiplyOne<decltype(zero)>(p, number);
  });
}

void transform(const LtProduct &p) {
  withLtType(p.d.type, [&](auto zero) {
    for (int32_t number = 0; number < p.d.batch; ++number)
      transformOne<decltype(zero)>(p, number);
  });
}

} // namespace shardc::emulator
