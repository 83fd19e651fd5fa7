// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What emulated cuBLASLt computes: products whose sums are kept in a wider type and rounded once.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_LT_PRODUCT_H
#define SHARDC_TOOLS_CUDA_EMULATOR_LT_PRODUCT_H

#include <cstddef>
#include <cstdint>

namespace shardc::emulator {

/// Column-major.
struct LtMatrix {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0; ///< elements

  size_t width() const;
};

struct LtProduct {
  LtMatrix a, b, c, d;
  bool transposeA = false, transposeB = false;
  const void *at = nullptr, *bt = nullptr, *ct = nullptr, *bias = nullptr;
  void *dt = nullptr;
  double alpha = 1, beta = 0;
};

/// D = alpha * op(A) * op(B) + beta * C + bias. f32 and f64 sum in double precision, 16-bit types
/// in f32.
void multiply(const LtProduct &product);

/// C = alpha * op(A) + beta * op(B), for each element.
void transform(const LtProduct &product);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_LT_PRODUCT_H
