// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops that transform have in common, and transforms that read or make some elements only.
#ifndef SHARDC_DIALECTS_ATEN_FOURIERPRODUCT_H
#define SHARDC_DIALECTS_ATEN_FOURIERPRODUCT_H

#include "dialects/aten/FourierMatrices.h"
#include "dialects/aten/KeptPositions.h"

#include <optional>

namespace shardc::aten {

/// A transform as its op says it.
struct FourierTransform {
  mlir::Operation *op;
  int64_t dim, normalization;
  Parts from, to;
  bool forward;
  /// Of the whole transform; kDynamic where it is not known.
  int64_t length;

  mlir::Value self() const { return op->getOperand(0); }
  mlir::Value result() const { return op->getResult(0); }
  /// Dims but that of the pairs.
  int64_t rank() const;
  /// Elements along the dim, before and after.
  int64_t sizeBefore() const;
  int64_t sizeAfter() const;

  /// Nothing of other ops.
  static std::optional<FourierTransform> of(mlir::Operation *op);
};

/// Moves a dim; those between keep their order.
mlir::Value moveDim(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, int64_t from,
                    int64_t to);

/// Elements `to` of the result, in order, from elements `from` of the operand, where the others are
/// zero: a product with a part of the matrix. The length must be known.
mlir::Value partOfTransform(mlir::OpBuilder &builder, const FourierTransform &transform,
                            const PositionSet &from, const PositionSet &to);
/// Elements of that matrix.
double sizeOfPart(const FourierTransform &transform, const PositionSet &from,
                  const PositionSet &to);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_FOURIERPRODUCT_H
