// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes and offsets that are known when the program runs, as sums of products. Equal expressions of
// two functions are equal here, so that what a plan function computes can be compared with what its
// entry needs.

#ifndef SHARDC_PASSES_VERIFY_SIZETERMS_H
#define SHARDC_PASSES_VERIFY_SIZETERMS_H

#include "mlir/IR/Operation.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shardc {

/// Coefficients of products of atoms; atoms are numbered by a SizeTerms, in the order in which it
/// meets them. The empty product is the constant. No coefficient is 0.
using SizeSum = std::map<std::vector<unsigned>, int64_t>;

class SizeTerms {
public:
  static SizeSum constant(int64_t value);
  /// Of an index value. Operands first: values are asked for in the order of their block.
  SizeSum of(mlir::Value value);
  /// Says that this is never negative, because it is the size of something.
  void noteSize(const SizeSum &sum) { sizes.insert(sum); }
  /// Nothing where a coefficient overflows.
  static std::optional<SizeSum> add(const SizeSum &a, const SizeSum &b, int64_t factor = 1);
  static std::optional<SizeSum> multiply(const SizeSum &a, const SizeSum &b);

  /// Whether `a` is at least `b` for all sizes, as far as can be shown: no atom is negative that
  /// stands for a size, a maximum is at least each of its operands, a quotient rounded up is at
  /// least the quotient. False where it cannot be shown. Sizes are taken to be small enough that
  /// nothing overflows.
  bool isAtLeast(const SizeSum &a, const SizeSum &b) const;
  /// Its value for some large sizes; the largest there is where that overflows. Whatever is shown
  /// to be at least something has at least its value.
  int64_t sample(const SizeSum &sum) const;
  /// What a maximum is taken of, through maxima of maxima; the sum itself where it is none.
  std::vector<SizeSum> maximumOf(const SizeSum &sum) const;
  /// The sum with quotients that are rounded up and multiplied again replaced by what is divided:
  /// no more than the sum.
  SizeSum withoutRounding(const SizeSum &sum) const;

private:
  enum class Kind { Other, Size, Maximum, CeilDiv };
  struct Atom {
    Kind kind = Kind::Other;
    std::vector<SizeSum> operands;
    int64_t divisor = 0;
    int64_t sample = 0;
  };
  struct Key {
    const void *name, *attributes;
    std::vector<SizeSum> operands;
    auto operator<=>(const Key &) const = default;
  };
  SizeSum compute(mlir::Value value);
  SizeSum atomOf(mlir::Value value);
  bool isNonNegative(const SizeSum &sum) const;
  bool isAtomNonNegative(unsigned atom) const;
  int64_t sampleOf(const Atom &atom) const;
  bool isShown(const SizeSum &difference) const;
  /// `coefficient` times a quotient as what is divided, as often as it was multiplied again.
  std::optional<SizeSum> replaceRounding(const SizeSum &sum, unsigned atom,
                                         int64_t coefficient) const;

  llvm::DenseMap<mlir::Value, SizeSum> known;
  std::map<Key, unsigned> numbers;
  std::vector<Atom> atoms;
  std::set<SizeSum> sizes;
};

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_SIZETERMS_H
