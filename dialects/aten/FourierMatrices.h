// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers of a Fourier transform that is computed as products: how a length is split, and the
// matrices and factors of each step. Computed in f64.
#ifndef SHARDC_DIALECTS_ATEN_FOURIERMATRICES_H
#define SHARDC_DIALECTS_ATEN_FOURIERMATRICES_H

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace shardc::aten {

/// How a transform of n elements is computed.
struct FourierPlan {
  enum Kind {
    Direct,      ///< one product with an n x n matrix
    Split,       ///< n = first * second: transforms of `first`, then of `second` elements
    Convolution, ///< as a convolution (Bluestein), by transforms of `second` >= 2n - 1 elements
  };
  Kind kind = Direct;
  int64_t first = 1, second = 1;
};

/// The cheapest plan.
FourierPlan planFourier(int64_t n);

/// exp(+-2 pi i k / n), with - for a forward transform.
std::complex<double> rootOfUnity(int64_t k, int64_t n, bool forward);

/// Which parts of numbers a product reads or makes.
enum class Parts { Both, Real };

/// The matrix of a transform as one of real numbers, row-major: rows are the parts of each of the n
/// elements, columns those of elements 0 to `count` - 1 of the result.
std::vector<double> fourierMatrix(int64_t n, int64_t count, bool forward, double scale, Parts from,
                                  Parts to);
/// The same for elements `rows` alone, and elements `columns` of the result.
std::vector<double> partOfFourierMatrix(int64_t n, std::span<const int64_t> rows,
                                        std::span<const int64_t> columns, bool forward,
                                        double scale, Parts from, Parts to);
/// The real matrix of n columns that makes real elements of elements 0 to n / 2 of their transform.
std::vector<double> realInverseMatrix(int64_t n, double scale);
/// The same for elements `rows` of the transform alone, and the real elements `columns`.
std::vector<double> partOfRealInverse(int64_t n, std::span<const int64_t> rows,
                                      std::span<const int64_t> columns, double scale);

/// rootOfUnity(i * j, rows * columns), times `scale`, for i of `rows` and j of `columns`.
std::vector<std::complex<double>> twiddles(int64_t rows, int64_t columns, bool forward,
                                           double scale);

/// exp(-+ pi i j^2 / n), by which a transform becomes a convolution.
std::vector<std::complex<double>> chirp(int64_t n, bool forward);
/// What the transform of n elements times their chirp is multiplied by: the transform (of `length`
/// elements, a power of two) of the conjugate chirp, divided by `length`.
std::vector<std::complex<double>> chirpFilter(int64_t n, int64_t length, bool forward);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_FOURIERMATRICES_H
