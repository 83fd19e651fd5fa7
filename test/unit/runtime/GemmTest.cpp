// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products of every form against three nested loops in double precision.
#include "runtime/gemm/Gemm.h"
#include "runtime/support/Failure.h"
#include "test/unit/runtime/GemmCases.h"

using namespace shardc::rt;

TEST(Gemm, LibraryAndPlainOnOneAndSeveralThreads) {
  ThreadPool one(1, 1), three(3, 1);
  std::shared_ptr<const Blas> library = Blas::shared(), plain = Blas::load("none");
  for (const test::GemmProblem &problem : test::gemmProblems()) {
    test::GemmCase fixture(problem);
    for (auto &blas : {library, plain})
      for (ThreadPool *pool : {&one, &three})
        fixture.run([&](const shardrt_gemm &gemm) { runGemm(*blas, *pool, gemm); });
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
