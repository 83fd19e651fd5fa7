// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/FourierMatrices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

namespace shardc::aten {

namespace {

using Complex = std::complex<double>;

// In operations for each element. A product with a matrix of n elements has about 8 n, at the speed
// of matrix products; a pass over memory takes as long as some hundred of those.
constexpr double kPass = 250;
constexpr int64_t kLargestMatrix = 128;

struct Costs {
  std::map<int64_t, std::pair<double, FourierPlan>> known;

  double of(int64_t n) { return best(n).first; }

  const std::pair<double, FourierPlan> &best(int64_t n) {
    if (auto found = known.find(n); found != known.end())
      return found->second;
    // A large matrix is the answer only where nothing else is.
    auto size = static_cast<double>(n);
    std::pair<double, FourierPlan> least{8 * size, {FourierPlan::Direct, n, 1}};
    if (n > kLargestMatrix)
      least.first *= 4;
    for (int64_t first = 2; first <= kLargestMatrix && first * 2 <= n; ++first) {
      if (n % first != 0)
        continue;
      int64_t second = n / first;
      double cost = 8 * static_cast<double>(first) + of(second) + 3 * kPass;
      if (cost < least.first)
        least = {cost, {FourierPlan::Split, first, second}};
    }
    // Powers of two are never convolutions, which are computed by them.
    if (n > 32 && (n & (n - 1)) != 0) {
      int64_t length = 1;
      while (length < 2 * n - 1)
        length *= 2;
      double cost = static_cast<double>(length) / size * (2 * of(length) + 4 * kPass);
      if (cost < least.first)
        least = {cost, {FourierPlan::Convolution, 1, length}};
    }
    return known[n] = least;
  }
};

/// In place, of a power of two.
void transform(std::vector<Complex> &x, bool forward) {
  auto n = static_cast<int64_t>(x.size());
  if (n == 1)
    return;
  std::vector<Complex> even(n / 2), odd(n / 2);
  for (int64_t i = 0; i < n / 2; ++i) {
    even[i] = x[2 * i];
    odd[i] = x[2 * i + 1];
  }
  transform(even, forward);
  transform(odd, forward);
  for (int64_t k = 0; k < n / 2; ++k) {
    Complex turned = rootOfUnity(k, n, forward) * odd[k];
    x[k] = even[k] + turned;
    x[k + n / 2] = even[k] - turned;
  }
}

} // namespace

FourierPlan planFourier(int64_t n) { return Costs().best(n).second; }

Complex rootOfUnity(int64_t k, int64_t n, bool forward) {
  k %= n;
  double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  // Of a quarter of a turn the sine and the cosine are exact.
  if (4 * k % n == 0) {
    static constexpr double cosines[] = {1, 0, -1, 0}, sines[] = {0, 1, 0, -1};
    int64_t quarter = 4 * k / n;
    return {cosines[quarter], forward ? -sines[quarter] : sines[quarter]};
  }
  return {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
}

/// 0 to count - 1.
static std::vector<int64_t> firstElements(int64_t count) {
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  return elements;
}

std::vector<double> partOfFourierMatrix(int64_t n, std::span<const int64_t> rows,
                                        std::span<const int64_t> columns, bool forward,
                                        double scale, Parts from, Parts to) {
  std::vector<double> matrix;
  matrix.reserve(4 * rows.size() * columns.size());
  for (int64_t j : rows)
    for (int part = 0; part < (from == Parts::Both ? 2 : 1); ++part)
      for (int64_t k : columns) {
        Complex root = scale * rootOfUnity(j * k, n, forward);
        // (a + bi) root: what a adds, and what b does.
        Complex added = part == 0 ? root : Complex(-root.imag(), root.real());
        matrix.push_back(added.real());
        if (to == Parts::Both)
          matrix.push_back(added.imag());
      }
  return matrix;
}

std::vector<double> fourierMatrix(int64_t n, int64_t count, bool forward, double scale, Parts from,
                                  Parts to) {
  return partOfFourierMatrix(n, firstElements(n), firstElements(count), forward, scale, from, to);
}

std::vector<double> partOfRealInverse(int64_t n, std::span<const int64_t> rows,
                                      std::span<const int64_t> columns, double scale) {
  std::vector<double> matrix;
  matrix.reserve(2 * rows.size() * columns.size());
  for (int64_t k : rows)
    for (int part = 0; part < 2; ++part)
      for (int64_t j : columns) {
        Complex root = scale * rootOfUnity(j * k, n, /*forward=*/false);
        // Every other element stands for its conjugate too.
        bool isAlone = k == 0 || 2 * k == n;
        double weight = isAlone ? (part == 0 ? 1 : 0) : 2;
        matrix.push_back(weight * (part == 0 ? root.real() : -root.imag()));
      }
  return matrix;
}

std::vector<double> realInverseMatrix(int64_t n, double scale) {
  return partOfRealInverse(n, firstElements(n / 2 + 1), firstElements(n), scale);
}

std::vector<Complex> twiddles(int64_t rows, int64_t columns, bool forward, double scale) {
  std::vector<Complex> factors;
  factors.reserve(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      factors.push_back(scale * rootOfUnity(i * j, rows * columns, forward));
  return factors;
}

std::vector<Complex> chirp(int64_t n, bool forward) {
  std::vector<Complex> factors;
  // j^2 modulo 2n, which does not overflow as a sum of odd numbers.
  for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j)
    factors.push_back(rootOfUnity(square, 2 * n, forward));
  return factors;
}

std::vector<Complex> chirpFilter(int64_t n, int64_t length, bool forward) {
  std::vector<Complex> filter(static_cast<size_t>(length)), factors = chirp(n, forward);
  for (int64_t j = 0; j < n; ++j) {
    filter[j] = std::conj(factors[j]) / static_cast<double>(length);
    if (j > 0)
      filter[length - j] = filter[j];
  }
  transform(filter, /*forward=*/true);
  return filter;
}

} // namespace shardc::aten
