// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/gemm/Gemm.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardc::rt {

namespace {

/// Below this many multiplications, dividing the work costs more than it saves.
constexpr int64_t smallWork = 1 << 16;
/// 16-bit types: blocks are converted to f32 in buffers of these sizes.
constexpr int64_t halfM = 192, halfN = 256, halfK = 512;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t roundUp(int64_t a, int64_t unit) { return ceilDivide(a, unit) * unit; }

/// How C is cut: blocks of rows x columns, the last ones smaller.
struct Grid {
  int64_t rows, columns; ///< of a block
  int64_t downwards, across;
};

Grid makeGrid(const shardrt_gemm &g, int threads) {
  int64_t pieces = g.m * g.n * std::max<int64_t>(g.k, 1) < smallWork
                       ? 1
                       : ceilDivide(int64_t(threads), std::min<int64_t>(g.batch, threads));
  // Of the ways to cut into that many pieces take the one whose blocks are nearest to squares: they
  // read least of A and B. Units keep the library's register tiles whole.
  Grid best{g.m, g.n, 1, 1};
  double least = INFINITY;
  for (int64_t across = 1; across <= pieces; ++across) {
    int64_t columns = std::min(g.n, roundUp(ceilDivide(g.n, across), 16));
    int64_t rows = std::min(g.m, roundUp(ceilDivide(g.m, ceilDivide(pieces, across)), 8));
    int64_t down = ceilDivide(g.m, rows), right = ceilDivide(g.n, columns);
    double waves = double(ceilDivide(down * right * g.batch, int64_t(threads)));
    double cost =
        waves * double(rows * columns) * (1 + 32.0 / double(rows) + 32.0 / double(columns));
    if (cost < least) {
      least = cost;
      best = {rows, columns, down, right};
    }
  }
  return best;
}

struct Block {
  int64_t batch, m0, m1, n0, n1;
  int64_t rows() const { return m1 - m0; }
  int64_t columns() const { return n1 - n0; }
};

template <typename T> const T *offset(const void *base, int64_t elements) {
  return static_cast<const T *>(base) + elements;
}

/// f32 and f64: bias goes into C first and the library adds to it.
template <typename T> void runBlock(const Blas &blas, const shardrt_gemm &g, const Block &block) {
  T *c = static_cast<T *>(g.c) + block.batch * g.stride_c + block.m0 * g.ldc + block.n0;
  T beta = T(g.beta);
  if (g.bias || g.k == 0) {
    const T *bias = static_cast<const T *>(g.bias);
    for (int64_t i = 0; i < block.rows(); ++i) {
      T *row = c + i * g.ldc;
      for (int64_t j = 0; j < block.columns(); ++j) {
        T value = beta == T(0) ? T(0) : beta * row[j];
        row[j] = bias ? value + bias[g.bias_along_m ? block.m0 + i : block.n0 + j] : value;
      }
    }
    beta = 1;
  }
  if (g.k == 0)
    return;
  Product<T> p;
  p.transposeA = g.transpose_a;
  p.transposeB = g.transpose_b;
  p.m = block.rows();
  p.n = block.columns();
  p.k = g.k;
  p.alpha = T(g.alpha);
  p.beta = beta;
  p.a = offset<T>(g.a, block.batch * g.stride_a + block.m0 * (g.transpose_a ? 1 : g.lda));
  p.b = offset<T>(g.b, block.batch * g.stride_b + block.n0 * (g.transpose_b ? g.ldb : 1));
  p.c = c;
  // Of a matrix with one row the leading dimension does not matter, but libraries check it.
  p.lda = std::max(g.lda, g.transpose_a ? p.m : p.k);
  p.ldb = std::max(g.ldb, g.transpose_b ? p.k : p.n);
  p.ldc = std::max(g.ldc, p.n);
  blas.multiply(p);
}

BFloat16 storeHalf(float x, BFloat16) { return toBFloat16(x); }
Float16 storeHalf(float x, Float16) { return toFloat16(x); }

/// Converts a rows x columns matrix to dense f32.
template <typename H>
void widen(const H *from, int64_t ld, int64_t rows, int64_t columns, float *to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[i * columns + j] = toFloat(from[i * ld + j]);
}

/// bf16 and f16: sums in an f32 copy of the block, rounded once at the end.
template <typename H> void runHalf(const Blas &blas, const shardrt_gemm &g, const Block &block) {
  thread_local std::vector<float> a, b, c;
  a.resize(size_t(halfM * halfK));
  b.resize(size_t(halfK * halfN));
  c.resize(size_t(halfM * halfN));
  H *out = static_cast<H *>(g.c) + block.batch * g.stride_c;
  const H *bias = static_cast<const H *>(g.bias);
  for (int64_t m0 = block.m0; m0 < block.m1; m0 += halfM)
    for (int64_t n0 = block.n0; n0 < block.n1; n0 += halfN) {
      int64_t rows = std::min(halfM, block.m1 - m0), columns = std::min(halfN, block.n1 - n0);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float value =
              g.beta == 0 ? 0.0f : float(g.beta) * toFloat(out[(m0 + i) * g.ldc + n0 + j]);
          if (bias)
            value += toFloat(bias[g.bias_along_m ? m0 + i : n0 + j]);
          c[size_t(i * columns + j)] = value;
        }
      for (int64_t k0 = 0; k0 < g.k; k0 += halfK) {
        int64_t depth = std::min(halfK, g.k - k0);
        const H *fromA = offset<H>(g.a, block.batch * g.stride_a);
        const H *fromB = offset<H>(g.b, block.batch * g.stride_b);
        if (g.transpose_a)
          widen(fromA + k0 * g.lda + m0, g.lda, depth, rows, a.data());
        else
          widen(fromA + m0 * g.lda + k0, g.lda, rows, depth, a.data());
        if (g.transpose_b)
          widen(fromB + n0 * g.ldb + k0, g.ldb, columns, depth, b.data());
        else
          widen(fromB + k0 * g.ldb + n0, g.ldb, depth, columns, b.data());
        Product<float> p;
        p.transposeA = g.transpose_a;
        p.transposeB = g.transpose_b;
        p.m = rows;
        p.n = columns;
        p.k = depth;
        p.alpha = float(g.alpha);
        p.beta = 1;
        p.a = a.data();
        p.lda = g.transpose_a ? rows : depth;
        p.b = b.data();
        p.ldb = g.transpose_b ? depth : columns;
        p.c = c.data();
        p.ldc = columns;
        blas.multiply(p);
      }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          out[(m0 + i) * g.ldc + n0 + j] = storeHalf(c[size_t(i * columns + j)], H());
    }
}

void check(const shardrt_gemm &g) {
  Problems problems;
  if (g.m < 0 || g.n < 0 || g.k < 0 || g.batch < 0)
    problems.add("an extent is negative");
  bool known = g.type == SHARDRT_F32 || g.type == SHARDRT_F64 || g.type == SHARDRT_BF16 ||
               g.type == SHARDRT_F16;
  if (!known)
    problems.add(std::string("there are no products of element type ") + typeName(g.type));
  auto leading = [&](const char *name, int64_t ld, int64_t rows, int64_t columns) {
    if (rows > 1 && ld < columns)
      problems.add(std::string(name) + " is " + std::to_string(ld) + ", at least " +
                   std::to_string(columns) + " needed");
  };
  leading("lda", g.lda, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k);
  leading("ldb", g.ldb, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n);
  leading("ldc", g.ldc, g.m, g.n);
  problems.raise(SHARDRT_INTERNAL, "matrix product " + std::to_string(g.m) + " x " +
                                       std::to_string(g.n) + " x " + std::to_string(g.k));
}

} // namespace

void runGemm(const Blas &blas, ThreadPool &pool, const shardrt_gemm &gemm) {
  check(gemm);
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0)
    return;
  int threads = ThreadPool::insideBody() ? 1 : pool.threads();
  struct Job {
    const Blas &blas;
    const shardrt_gemm &gemm;
    Grid grid;
  } job{blas, gemm, makeGrid(gemm, threads)};
  auto body = [](void *arg, int64_t begin, int64_t end) {
    const Job &job = *static_cast<Job *>(arg);
    const shardrt_gemm &g = job.gemm;
    const Grid &grid = job.grid;
    for (int64_t task = begin; task < end; ++task) {
      int64_t right = task % grid.across, down = task / grid.across % grid.downwards;
      Block block{task / (grid.across * grid.downwards), down * grid.rows,
                  std::min(g.m, (down + 1) * grid.rows), right * grid.columns,
                  std::min(g.n, (right + 1) * grid.columns)};
      switch (g.type) {
      case SHARDRT_F32:
        runBlock<float>(job.blas, g, block);
        break;
      case SHARDRT_F64:
        runBlock<double>(job.blas, g, block);
        break;
      case SHARDRT_BF16:
        runHalf<BFloat16>(job.blas, g, block);
        break;
      default:
        runHalf<Float16>(job.blas, g, block);
      }
    }
  };
  pool.parallelFor(body, &job, gemm.batch * job.grid.downwards * job.grid.across, 1);
}

} // namespace shardc::rt
