// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrix product of a BLAS library found at run time, or a plain one of our own.
#ifndef SHARDC_RUNTIME_GEMM_BLAS_H
#define SHARDC_RUNTIME_GEMM_BLAS_H

#include <cstdint>
#include <memory>
#include <string>

namespace shardc::rt {

/// C = alpha op(A) op(B) + beta C, row-major, with the conventions of cblas_sgemm; all extents
/// positive, leading dimensions as cblas wants them. beta = 0: C is not read.
template <typename T> struct Product {
  bool transposeA = false, transposeB = false;
  int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T *a = nullptr;
  int64_t lda = 0;
  const T *b = nullptr;
  int64_t ldb = 0;
  T beta = 0;
  T *c = nullptr;
  int64_t ldc = 0;
};

/// Functions may be called from several threads at once; each call uses the calling thread only.
class Blas {
public:
  /// The library for this process, loaded once and kept. Searched: the environment's SHARDRT_BLAS
  /// (a path; "none" for the plain product; a failure to load it throws), the path given when the
  /// runtime was configured, the folder of libshardrt, the system's openblas, cblas and blas.
  static std::shared_ptr<const Blas> shared();
  /// One library: throws Failure if it cannot be used. "none": the plain product.
  static std::shared_ptr<const Blas> load(const std::string &path);
  ~Blas();

  void multiply(const Product<float> &product) const;
  void multiply(const Product<double> &product) const;

  bool isPlain() const { return !handle; }
  /// For the log: which library, or that none was found and where it was looked for.
  const std::string &description() const { return text; }

private:
  Blas() = default;
  bool bind(std::string &problem);
  template <typename T> bool callLibrary(const Product<T> &product) const;

  void *handle = nullptr;
  void *sgemm = nullptr;
  void *dgemm = nullptr;
  bool wideIntegers = false; ///< the library's integers have 64 bits
  std::string text;
};

/// The plain product: blocked and vectorisable, no assembly.
void multiplyPlain(const Product<float> &product);
void multiplyPlain(const Product<double> &product);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_GEMM_BLAS_H
