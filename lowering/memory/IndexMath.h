// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on sizes, strides and offsets that are constants where they can be, and where not, one
// value for equal expressions.

#ifndef SHARDC_LOWERING_MEMORY_INDEXMATH_H
#define SHARDC_LOWERING_MEMORY_INDEXMATH_H

#include "lowering/memory/IndexValues.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace shardc::memory {

using Size = mlir::OpFoldResult;
using Sizes = llvm::SmallVector<mlir::OpFoldResult>;

class IndexMath {
public:
  /// Builds at the end of the block that `values` is about.
  IndexMath(mlir::OpBuilder &builder, mlir::Location loc, IndexValues &values)
      : builder(builder), loc(loc), values(values) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  IndexValues &values;

  Size constant(int64_t value) const { return builder.getIndexAttr(value); }
  Size add(Size a, Size b) const;
  Size sub(Size a, Size b) const;
  Size mul(Size a, Size b) const;
  Size ceilDiv(Size a, int64_t b) const;
  Size max(Size a, Size b) const;
  Size min(Size a, Size b) const;
  Size product(llvm::ArrayRef<Size> sizes) const;
  /// `start` where it is not negative, else `start + size`.
  Size fromEnd(Size start, Size size) const;
  mlir::Value value(Size size) const;
  mlir::Value constantValue(int64_t value) const;
  /// For sizes: never less than 0.
  bool isNonNegative(Size size) const { return values.isNonNegative(values.of(size)); }
};

/// kDynamic where not constant.
int64_t staticSize(Size size);
llvm::SmallVector<int64_t> staticSizes(llvm::ArrayRef<Size> sizes);
inline bool isConstant(Size size, int64_t value) {
  return mlir::getConstantIntValue(size) == value;
}
/// Known to be equal: equal constants, or the same value.
inline bool sameSize(Size a, Size b) { return mlir::isEqualConstantIntOrValue(a, b); }

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_INDEXMATH_H
