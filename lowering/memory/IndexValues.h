// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index values of a block as polynomials over what is not arithmetic, so that equal expressions are
// one value: `4 * (s * 16)` and `s * 64` are, and so are strides that were computed twice. Without
// this no buffer of dynamic size could be seen to be dense.

#ifndef SHARDC_LOWERING_MEMORY_INDEXVALUES_H
#define SHARDC_LOWERING_MEMORY_INDEXVALUES_H

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

#include <map>
#include <optional>
#include <vector>

namespace shardc::memory {

/// A sum of products of atoms with coefficients. Atoms are numbered by an IndexValues; the empty
/// product is the constant term. No coefficient is zero.
class Polynomial {
public:
  Polynomial() = default;
  explicit Polynomial(int64_t constant);
  static Polynomial atom(unsigned number);

  /// Nothing where a coefficient overflows, or where there would be too many terms to be of use.
  static std::optional<Polynomial> add(const Polynomial &a, const Polynomial &b,
                                       int64_t factor = 1);
  static std::optional<Polynomial> multiply(const Polynomial &a, const Polynomial &b);

  std::optional<int64_t> constant() const;
  const std::map<std::vector<unsigned>, int64_t> &getTerms() const { return terms; }
  auto operator<=>(const Polynomial &) const = default;

private:
  std::map<std::vector<unsigned>, int64_t> terms;
};

/// The values known so far in one block. All must dominate whatever is built next: values are added
/// in the order of the block.
class IndexValues {
public:
  Polynomial of(mlir::OpFoldResult size);
  /// A constant, or a value that was noted.
  std::optional<mlir::OpFoldResult> find(const Polynomial &polynomial) const;
  /// A value that is this polynomial of others.
  void note(mlir::Value value, const Polynomial &polynomial);
  /// A value that is not negative, beside what follows from arithmetic.
  void noteNonNegative(mlir::Value value);
  /// True only where it is certain.
  bool isNonNegative(const Polynomial &polynomial) const;

  /// `op` cloned with the operands that `mapping` has for it; one that was cloned before where its
  /// operands are the same. For ops without side effects.
  mlir::Value clone(mlir::OpBuilder &builder, mlir::Operation *op,
                    llvm::ArrayRef<mlir::Value> operands);

private:
  unsigned atomOf(mlir::Value value);

  struct CloneKey {
    const void *name, *attributes;
    std::vector<Polynomial> operands;
    auto operator<=>(const CloneKey &) const = default;
  };

  llvm::DenseMap<mlir::Value, unsigned> atoms;
  std::vector<bool> nonNegative; // by atom
  llvm::DenseMap<mlir::Value, Polynomial> polynomials;
  std::map<Polynomial, mlir::Value> values;
  std::map<CloneKey, mlir::Value> clones;
};

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_INDEXVALUES_H
