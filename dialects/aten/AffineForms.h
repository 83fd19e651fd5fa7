// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer and bool tensors whose elements are known functions of their position: what position ids
// and attention masks are made of. Works with dynamic sizes, and never looks at elements one by
// one.
#ifndef SHARDC_DIALECTS_ATEN_AFFINEFORMS_H
#define SHARDC_DIALECTS_ATEN_AFFINEFORMS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace shardc::aten {

/// Element at (i0, i1, ...) = constant + sum of coefficients[d] * i_d. The coefficient of a dim of
/// size 1 is 0.
struct AffineForm {
  llvm::SmallVector<int64_t> coefficients; ///< one for each dim
  int64_t constant = 0;

  bool isConstant() const {
    return llvm::all_of(coefficients, [](int64_t c) { return c == 0; });
  }
  bool operator==(const AffineForm &) const = default;
};

/// Where every one of `conditions` is at least 0, the element is true. No conditions: all true.
struct MaskForm {
  llvm::SmallVector<AffineForm> conditions;
  bool isFalse = false; ///< all false; no conditions then

  bool isTrue() const { return !isFalse && conditions.empty(); }
};

/// Forms of the values of a function, found in one walk in program order.
class AffineForms {
public:
  /// Looks at the results of `op`; its operands have been looked at before.
  void visit(mlir::Operation *op);
  /// Says that `value` has the form of `other`: both stand for the same tensor.
  void copy(mlir::Value value, mlir::Value other);

  /// Null where nothing is known. Integers have affine forms, bools mask forms.
  const AffineForm *getAffine(mlir::Value value) const;
  const MaskForm *getMask(mlir::Value value) const;

  /// The element of all positions, if it is the same: an integer, or 0 or 1 for a bool.
  std::optional<int64_t> getSplat(mlir::Value value) const;

  /// Whether (row, column) = the last two dims of a mask, or of an additive mask of 0 and
  /// -infinity, are seen exactly where column <= row.
  bool isCausal(mlir::Value mask) const;
  /// Whether a mask, or an additive mask, lets everything be seen.
  bool isAllVisible(mlir::Value mask) const;

private:
  const MaskForm *visibility(mlir::Value mask) const;

  llvm::DenseMap<mlir::Value, AffineForm> affine;
  llvm::DenseMap<mlir::Value, MaskForm> masks;
  /// Float tensors that are 0 where a mask holds and the lowest value or -infinity elsewhere.
  llvm::DenseMap<mlir::Value, MaskForm> additive;
};

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_AFFINEFORMS_H
