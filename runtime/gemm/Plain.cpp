// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrix product for machines without a BLAS library.
#include "runtime/gemm/Blas.h"

#include <algorithm>
#include <vector>

namespace shardc::rt {

namespace {

constexpr int64_t blockK = 256, blockN = 256, tileM = 4, tileN = 16;

/// Packs op(B)[k0 : k0+kb, n0 : n0+nb] into panels of tileN columns, zero-filled at the right edge,
/// so that the inner loop reads one dense row per step of k.
template <typename T>
void packB(const Product<T> &p, int64_t k0, int64_t kb, int64_t n0, int64_t nb, T *out) {
  for (int64_t j = 0; j < nb; j += tileN)
    for (int64_t k = 0; k < kb; ++k)
      for (int64_t jj = 0; jj < tileN; ++jj) {
        int64_t row = k0 + k, column = n0 + j + jj;
        *out++ = j + jj >= nb   ? T(0)
                 : p.transposeB ? p.b[column * p.ldb + row]
                                : p.b[row * p.ldb + column];
      }
}

/// rows x tileN products over kb, added to C.
template <typename T>
void tile(const Product<T> &p, const T *b, int64_t i0, int64_t rows, int64_t k0, int64_t kb,
          int64_t j0, int64_t columns) {
  T acc[tileM][tileN] = {};
  for (int64_t k = 0; k < kb; ++k) {
    const T *row = b + k * tileN;
    for (int64_t i = 0; i < rows; ++i) {
      T a = p.transposeA ? p.a[(k0 + k) * p.lda + i0 + i] : p.a[(i0 + i) * p.lda + k0 + k];
      for (int64_t j = 0; j < tileN; ++j)
        acc[i][j] += a * row[j];
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      p.c[(i0 + i) * p.ldc + j0 + j] += p.alpha * acc[i][j];
}

template <typename T> void multiplyBlocked(const Product<T> &p) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      p.c[i * p.ldc + j] = p.beta == T(0) ? T(0) : p.beta * p.c[i * p.ldc + j];
  std::vector<T> packed(size_t(blockK * blockN));
  for (int64_t n0 = 0; n0 < p.n; n0 += blockN)
    for (int64_t k0 = 0; k0 < p.k; k0 += blockK) {
      int64_t nb = std::min(blockN, p.n - n0), kb = std::min(blockK, p.k - k0);
      packB(p, k0, kb, n0, nb, packed.data());
      for (int64_t i = 0; i < p.m; i += tileM)
        for (int64_t j = 0; j < nb; j += tileN)
          tile(p, packed.data() + j * kb, i, std::min(tileM, p.m - i), k0, kb, n0 + j,
               std::min(tileN, nb - j));
    }
}

} // namespace

void multiplyPlain(const Product<float> &product) { multiplyBlocked(product); }
void multiplyPlain(const Product<double> &product) { multiplyBlocked(product); }

} // namespace shardc::rt
