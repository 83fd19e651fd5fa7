// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products of every form against three nested loops in double precision.
#include "runtime/gemm/Gemm.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/Elements.h"

#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

namespace {

struct Problem {
  shardrt_type type = SHARDRT_F32;
  int64_t m, n, k, batch = 1;
  bool ta = false, tb = false;
  int bias = 0; ///< 1: along n, 2: along m
  double alpha = 1, beta = 0;
  int64_t pad = 0; ///< of leading dimensions
};

struct Data {
  std::vector<uint8_t> bytes;
  shardrt_type type;
  Data(shardrt_type type, int64_t count, std::mt19937 *random)
      : bytes(size_t(std::max<int64_t>(count, 1) * typeBytes(type)), 0xff), type(type) {
    for (int64_t i = 0; random && i < count; ++i)
      test::set(type, bytes.data(), size_t(i), double(int((*random)() % 2001) - 1000) / 1000);
  }
  std::vector<double> decoded() const {
    std::vector<double> out(bytes.size() / size_t(typeBytes(type)));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = test::get(type, bytes.data(), i);
    return out;
  }
  double at(int64_t i) const { return test::get(type, bytes.data(), size_t(i)); }
};

/// How far a result may be off: a few roundings of the accumulation, one of the store.
double tolerance(shardrt_type type, int64_t k) {
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
struct Fixture {
  Problem p;
  std::mt19937 random;
  int64_t lda, ldb, ldc, strideA, strideB, strideC;
  Data a, b, c, bias;
  std::vector<double> wanted;
  std::string what;

  explicit Fixture(const Problem &p)
      : p(p), random(unsigned(p.m * 131 + p.n * 17 + p.k)), lda((p.ta ? p.m : p.k) + p.pad),
        ldb((p.tb ? p.k : p.n) + p.pad), ldc(p.n + p.pad), strideA((p.ta ? p.k : p.m) * lda),
        strideB((p.tb ? p.n : p.k) * ldb), strideC(p.m * ldc),
        a(p.type, strideA * p.batch, &random), b(p.type, strideB * p.batch, &random),
        // With beta = 0, C is full of NaN and must not be read.
        c(p.type, strideC * p.batch, p.beta == 0 ? nullptr : &random),
        bias(p.type, p.bias == 2 ? p.m : p.n, &random) {
    what = std::string(typeName(p.type)) + " " + std::to_string(p.m) + "x" + std::to_string(p.n) +
           "x" + std::to_string(p.k) + " batch " + std::to_string(p.batch) + (p.ta ? " ta" : "") +
           (p.tb ? " tb" : "");
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

  void run(const Blas &blas, ThreadPool &pool) {
    Data out = c;
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
    runGemm(blas, pool, g);
    std::vector<double> got = out.decoded();
    size_t element = 0;
    for (int64_t row = 0; row < p.m * p.batch; ++row)
      for (int64_t j = 0; j < p.n; ++j, ++element) {
        ASSERT_NEAR(got[size_t(row * ldc + j)], wanted[element], tolerance(p.type, p.k))
            << what << " at row " << row << ", column " << j;
      }
    for (int64_t i = 0; i < p.m * p.batch; ++i)
      for (int64_t j = p.n; j < ldc; ++j) {
        size_t bytes = size_t(typeBytes(p.type)), at = size_t(i * ldc + j) * bytes;
        ASSERT_EQ(std::memcmp(&out.bytes[at], &c.bytes[at], bytes), 0) << what << ": padding";
      }
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
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

} // namespace

TEST(Gemm, LibraryAndPlainOnOneAndSeveralThreads) {
  ThreadPool one(1, 1), three(3, 1);
  std::shared_ptr<const Blas> library = Blas::shared(), plain = Blas::load("none");
  for (const Problem &problem : problems()) {
    Fixture fixture(problem);
    for (auto &blas : {library, plain})
      for (ThreadPool *pool : {&one, &three})
        fixture.run(*blas, *pool);
  }
}

TEST(Gemm, StridesOfZeroShareAMatrix) {
  auto blas = Blas::load("none");
  ThreadPool pool(1, 1);
  float a[] = {1, 2, 3, 4}, b[] = {1, 1}, c[2] = {};
  shardrt_gemm g{};
  g.a = a, g.b = b, g.c = c;
  g.m = 1, g.n = 1, g.k = 2, g.batch = 2;
  g.lda = 2, g.ldb = 1, g.ldc = 1;
  g.stride_a = 2, g.stride_b = 0, g.stride_c = 1;
  g.alpha = 1;
  g.type = SHARDRT_F32;
  runGemm(*blas, pool, g);
  EXPECT_EQ(c[0], 3);
  EXPECT_EQ(c[1], 7);
}

TEST(Gemm, BadDescriptionsAreErrors) {
  auto blas = Blas::load("none");
  ThreadPool pool(1, 1);
  float x[16] = {};
  shardrt_gemm g{};
  g.a = g.b = x;
  g.c = x + 8;
  g.m = g.n = g.k = 2;
  g.lda = g.ldb = g.ldc = 2;
  g.batch = 1;
  g.type = SHARDRT_F32;
  runGemm(*blas, pool, g);
  for (auto spoil : {+[](shardrt_gemm &g) { g.lda = 1; }, +[](shardrt_gemm &g) { g.ldb = 1; },
                     +[](shardrt_gemm &g) { g.ldc = 1; }, +[](shardrt_gemm &g) { g.m = -1; },
                     +[](shardrt_gemm &g) { g.type = SHARDRT_I32; }}) {
    shardrt_gemm bad = g;
    spoil(bad);
    EXPECT_THROW(runGemm(*blas, pool, bad), Failure);
  }
}

TEST(Blas, ALibraryThatCannotBeUsedIsAnError) {
  EXPECT_THROW(Blas::load("/nonexistent/libblas.so"), Failure);
  EXPECT_THROW(Blas::load("libc.so.6"), Failure) << "it has no cblas_sgemm";
  EXPECT_TRUE(Blas::load("none")->isPlain());
}
