// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of programs (shardrt_gemm, row-major) by those of cuBLASLt (column-major): a row-major
// matrix is its transpose, so that C' = op(B)' op(A)'. What it does not do in one call is made of
// several, with the same rounding.
#include "runtime/plugins/cuda/LtProducts.h"

#include <algorithm>

namespace shardc::plugin::cuda {

namespace {

size_t widthOf(const shardrt_gemm &g) { return size_t(elementBytes(g.type)); }
bool isHalf(const shardrt_gemm &g) { return g.type == SHARDRT_F16 || g.type == SHARDRT_BF16; }

std::string textOf(const shardrt_gemm &g) {
  return "a product of " + std::to_string(g.m) + " x " + std::to_string(g.k) + " and " +
         std::to_string(g.k) + " x " + std::to_string(g.n) + " in " + ltTypeName(g.type);
}

void check(const shardrt_gemm &g) {
  std::string problems;
  auto problem = [&](bool wrong, const char *text) {
    if (wrong)
      problems += (problems.empty() ? "" : ", ") + std::string(text);
  };
  problem(g.type != SHARDRT_F32 && g.type != SHARDRT_F64 && !isHalf(g), "the element type");
  problem(g.m < 0 || g.n < 0 || g.k < 0 || g.batch < 0, "a negative size");
  const int64_t columnsA = g.transpose_a ? g.m : g.k, rowsA = g.transpose_a ? g.k : g.m;
  const int64_t columnsB = g.transpose_b ? g.k : g.n, rowsB = g.transpose_b ? g.n : g.k;
  problem(rowsA > 1 && g.lda < columnsA, "lda");
  problem(rowsB > 1 && g.ldb < columnsB, "ldb");
  problem(g.m > 1 && g.ldc < g.n, "ldc");
  problem(g.stride_a < 0 || g.stride_b < 0 || g.stride_c < 0, "a negative stride");
  if (!problems.empty())
    throw Failure{SHARDRT_INVALID_ARGUMENT, textOf(g) + ": wrong are " + problems};
}

class Gemm {
public:
  Gemm(Device &device, LtProducts &products, const shardrt_gemm &gemm, StreamHandle stream)
      : device(device), products(products), g(gemm), stream(stream) {}

  void run() {
    if (g.m == 0 || g.n == 0 || g.batch == 0)
      return;
    // cuBLASLt has no product over no elements: that of ones, times 0, is one.
    if (g.k == 0 || g.alpha == 0)
      overNothing();
    if (!g.bias)
      return multiply(columnMajor());
    if (!g.bias_along_m && g.type != SHARDRT_F64) {
      LtProduct product = columnMajor();
      product.bias = g.bias;
      return multiply(product);
    }
    if (isHalf(g))
      return biasOfTranspose();
    // The bias goes into C first, and the product is added to it.
    addBias();
    LtProduct product = columnMajor();
    product.beta = 1;
    multiply(product);
  }

private:
  void overNothing() {
    const void *ones = products.ones(g.type, std::max(g.m, g.n), stream);
    g.a = g.b = ones;
    g.k = 1;
    g.alpha = 0;
    g.stride_a = g.stride_b = 0;
    g.transpose_a = 1; // one row of m elements
    g.transpose_b = 0; // one row of n
    g.lda = g.m;
    g.ldb = g.n;
  }

  /// C' = op(B)' op(A)', n x m.
  LtProduct columnMajor() const {
    LtProduct p;
    p.type = g.type;
    p.m = g.n;
    p.n = g.m;
    p.k = g.k;
    p.batch = g.batch;
    p.a = {g.b,        g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, g.ldb,
           g.stride_b, g.transpose_b != 0};
    p.b = {g.a,        g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, g.lda,
           g.stride_a, g.transpose_a != 0};
    p.c = g.c;
    p.ldc = g.ldc;
    p.strideC = g.stride_c;
    p.alpha = g.alpha;
    p.beta = g.beta;
    return p;
  }

  /// C = beta * C + bias, as the product of the bias and ones.
  void addBias() {
    LtProduct p = columnMajor();
    const void *ones = products.ones(g.type, std::max(g.m, g.n), stream);
    p.k = 1;
    p.a = {g.bias_along_m ? ones : g.bias, g.n, 1, g.n, 0, false};
    p.b = {g.bias_along_m ? g.bias : ones, 1, g.m, 1, 0, false};
    p.alpha = 1;
    multiply(p);
  }

  /// 16-bit types with an element for each row, which is a column here, where cuBLASLt adds none:
  /// the product is made transposed, rounded once, and then copied to its place.
  void biasOfTranspose() {
    const int64_t dense = g.m * g.n;
    char *memory = products.reserve(stream, LtProducts::Purpose::Transposed,
                                    size_t(dense * g.batch) * widthOf(g));
    if (g.beta != 0) {
      LtMatrix c{g.c, g.n, g.m, g.ldc, g.stride_c, false};
      products.transpose(g.type, c, memory, g.m, dense, g.batch, stream);
    }
    LtProduct p = columnMajor();
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    p.a.transposed = !p.a.transposed;
    p.b.transposed = !p.b.transposed;
    p.c = memory;
    p.ldc = g.m;
    p.strideC = dense;
    p.bias = g.bias;
    multiply(p);
    LtMatrix made{memory, g.m, g.n, g.m, dense, false};
    products.transpose(g.type, made, g.c, g.ldc, g.stride_c, g.batch, stream);
  }

  /// Where cuBLASLt cannot take operands as they lie, they are copied.
  void multiply(const LtProduct &p) {
    if (products.multiply(p, stream))
      return;
    if (p.batch > 1) {
      for (int64_t i = 0; i < p.batch; ++i) {
        products.keepShort(stream);
        multiply(oneOf(p, i));
      }
      return;
    }
    if (!multiplyCopies(p))
      throw Failure{SHARDRT_INCOMPATIBLE,
                    textOf(g) + ": this version of cuBLASLt has no algorithm for it"};
  }

  LtProduct oneOf(const LtProduct &p, int64_t number) const {
    LtProduct one = p;
    auto at = [&](const void *data, int64_t stride) {
      return static_cast<const char *>(data) + number * stride * int64_t(widthOf(g));
    };
    one.batch = 1;
    one.a.data = at(p.a.data, p.a.stride);
    one.b.data = at(p.b.data, p.b.stride);
    one.c = const_cast<char *>(at(p.c, p.strideC));
    return one;
  }

  void copyColumns(char *to, int64_t toLd, const void *from, int64_t fromLd, int64_t rows,
                   int64_t columns) {
    auto pitch = [&](int64_t ld) { return size_t(std::max(ld, rows)) * widthOf(g); };
    device.copyRows(to, pitch(toLd), from, pitch(fromLd), size_t(rows) * widthOf(g),
                    size_t(columns), stream);
  }

  /// With all operands at good addresses and distances.
  bool multiplyCopies(const LtProduct &p) {
    constexpr int64_t alignment = 256;
    const auto width = int64_t(widthOf(g));
    auto padded = [&](int64_t rows) {
      int64_t bytes = (rows * width + alignment - 1) / alignment * alignment;
      return bytes / width;
    };
    auto bytesOf = [&](int64_t rows, int64_t columns) { return padded(rows) * columns * width; };
    const int64_t bytesA = bytesOf(p.a.rows, p.a.columns), bytesB = bytesOf(p.b.rows, p.b.columns);
    const int64_t bytesC = bytesOf(p.m, p.n), bytesBias = bytesOf(p.m, 1);
    char *c = products.reserve(stream, LtProducts::Purpose::Copies,
                               size_t(bytesC + bytesA + bytesB + bytesBias));
    char *a = c + bytesC, *b = a + bytesA, *bias = b + bytesB;
    LtProduct copied = p;
    copyColumns(a, padded(p.a.rows), p.a.data, p.a.ld, p.a.rows, p.a.columns);
    copyColumns(b, padded(p.b.rows), p.b.data, p.b.ld, p.b.rows, p.b.columns);
    copied.a.data = a;
    copied.a.ld = padded(p.a.rows);
    copied.b.data = b;
    copied.b.ld = padded(p.b.rows);
    copied.c = c;
    copied.ldc = padded(p.m);
    if (p.beta != 0)
      copyColumns(c, copied.ldc, p.c, p.ldc, p.m, p.n);
    if (p.bias) {
      copyColumns(bias, padded(p.m), p.bias, p.m, p.m, 1);
      copied.bias = bias;
    }
    if (!products.multiply(copied, stream))
      return false;
    copyColumns(static_cast<char *>(p.c), p.ldc, c, copied.ldc, p.m, p.n);
    return true;
  }

  Device &device;
  LtProducts &products;
  shardrt_gemm g;
  const StreamHandle stream;
};

} // namespace

void runGemm(Device &device, const shardrt_gemm &gemm, StreamHandle stream) {
  check(gemm);
  if (!device.lt)
    device.lt = std::make_shared<LtProducts>(device);
  Gemm(device, *static_cast<LtProducts *>(device.lt.get()), gemm, stream).run();
}

} // namespace shardc::plugin::cuda
