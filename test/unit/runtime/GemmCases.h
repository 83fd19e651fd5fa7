// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products of every form, and what they should give: three nested loops in double precision.
#ifndef SHARDC_TEST_UNIT_RUNTIME_GEMMCASES_H
#define SHARDC_TEST_UNIT_RUNTIME_GEMMCASES_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/Elements.h"

#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace test {

struct GemmProblem {
  shardrt_type type = SHARDRT_F32;
  int64_t m, n, k, batch = 1;
  bool ta = false, tb = false;
  int bias = 0; ///< 1: along n, 2: along m
  double alpha = 1, beta = 0;
  int64_t pad = 0; ///< of leading dimensions
};

struct GemmData {
  std::vector<uint8_t> bytes;
  shardrt_type type;
  GemmData(shardrt_type type, int64_t count, std::mt19937 *random)
      : bytes(size_t(std::max<int64_t>(count, 1) * shardc::rt::typeBytes(type)), 0xff), type(type) {
    for (int64_t i = 0; random && i < count; ++i)
      set(type, bytes.data(), size_t(i), double(int((*random)() % 2001) - 1000) / 1000);
  }
  std::vector<double> decoded() const {
    std::vector<double> out(bytes.size() / size_t(shardc::rt::typeBytes(type)));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = get(type, bytes.data(), i);
    return out;
  }
  double at(int64_t i) const { return get(type, bytes.data(), size_t(i)); }
};

/// How far a result may be off: a few roundings of the accumulation, one of the store.
inline double gemmTolerance(shardrt_type type, int64_t k) {
  double depth = double(std::max<int64_t>(k, 4));
  switch (type) {
  case SHARDRT_F64:
    return depth * 1e-15;
  case SHARDRT_BF16:
    return depth * 1e-6 + 0.02 * std::sqrt(depth);
  case SHARDRT_F16:
    return depth * 1e-6 + 0.003 * std::sqrt(depth);
  default:
    return depth * 1e-6;
  }
}

/// Operands and the wanted result of one problem.
struct GemmCase {
  GemmProblem p;
  std::mt19937 random;
  int64_t lda, ldb, ldc, strideA, strideB, strideC;
  GemmData a, b, c, bias;
  std::vector<double> wanted;
  std::string what;

  explicit GemmCase(const GemmProblem &p)
      : p(p), random(unsigned(p.m * 131 + p.n * 17 + p.k)), lda((p.ta ? p.m : p.k) + p.pad),
        ldb((p.tb ? p.k : p.n) + p.pad), ldc(p.n + p.pad), strideA((p.ta ? p.k : p.m) * lda),
        strideB((p.tb ? p.n : p.k) * ldb), strideC(p.m * ldc),
        a(p.type, strideA * p.batch, &random), b(p.type, strideB * p.batch, &random),
        // With beta = 0, C is full of NaN and must not be read.
        c(p.type, strideC * p.batch, p.beta == 0 ? nullptr : &random),
        bias(p.type, p.bias == 2 ? p.m : p.n, &random) {
    what = std::string(shardc::rt::typeName(p.type)) + " " + std::to_string(p.m) + "x" +
           std::to_string(p.n) + "x" + std::to_string(p.k) + " batch " + std::to_string(p.batch) +
           (p.ta ? " ta" : "") + (p.tb ? " tb" : "");
    std::vector<double> wideA = a.decoded(), wideB = b.decoded();
    for (int64_t s = 0; s < p.batch; ++s)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < p.k; ++k)
            sum += wideA[size_t(s * strideA + (p.ta ? k * lda + i : i * lda + k))] *
                   wideB[size_t(s * strideB + (p.tb ? j * ldb + k : k * ldb + j))];
          sum = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * c.at(s * strideC + i * ldc + j));
          wanted.push_back(sum + (p.bias ? bias.at(p.bias == 2 ? i : j) : 0));
        }
  }

  void run(const std::function<void(const shardrt_gemm &)> &multiply) {
    GemmData out = c;
    shardrt_gemm g{};
    g.a = a.bytes.data();
    g.b = b.bytes.data();
    g.c = out.bytes.data();
    g.bias = p.bias ? bias.bytes.data() : nullptr;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.lda = lda, g.ldb = ldb, g.ldc = ldc;
    g.batch = p.batch;
    g.stride_a = strideA, g.stride_b = strideB, g.stride_c = strideC;
    g.alpha = p.alpha, g.beta = p.beta;
    g.type = p.type;
    g.transpose_a = p.ta, g.transpose_b = p.tb, g.bias_along_m = p.bias == 2;
    multiply(g);
    std::vector<double> got = out.decoded();
    size_t element = 0;
    for (int64_t row = 0; row < p.m * p.batch; ++row)
      for (int64_t j = 0; j < p.n; ++j, ++element) {
        ASSERT_NEAR(got[size_t(row * ldc + j)], wanted[element], gemmTolerance(p.type, p.k))
            << what << " at row " << row << ", column " << j;
      }
    for (int64_t i = 0; i < p.m * p.batch; ++i)
      for (int64_t j = p.n; j < ldc; ++j) {
        size_t bytes = size_t(shardc::rt::typeBytes(p.type)), at = size_t(i * ldc + j) * bytes;
        ASSERT_EQ(std::memcmp(&out.bytes[at], &c.bytes[at], bytes), 0) << what << ": padding";
      }
  }
};

inline std::vector<GemmProblem> gemmProblems() {
  std::vector<GemmProblem> all;
  for (shardrt_type type : {SHARDRT_F32, SHARDRT_F64, SHARDRT_BF16, SHARDRT_F16})
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        all.push_back({type, 1, 1, 1, 1, ta, tb});
        all.push_back({type, 1, 50, 33, 1, ta, tb, 1});
        all.push_back({type, 37, 1, 20, 1, ta, tb, 2, 1, 0, 3});
        all.push_back({type, 65, 130, 47, 1, ta, tb, 1, 0.5, 2, 5});
        all.push_back({type, 13, 29, 31, 3, ta, tb, 1, 1, 1, 1});
        all.push_back({type, 210, 270, 530, 1, ta, tb, 1});
        all.push_back({type, 5, 7, 0, 2, ta, tb, 1, 1, 3});
        all.push_back({type, 0, 7, 4, 1, ta, tb, 1});
        all.push_back({type, 7, 0, 4, 1, ta, tb});
        all.push_back({type, 4, 4, 4, 0, ta, tb});
      }
  return all;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_GEMMCASES_H
