// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions on the symbols of a function that hold in every run: `dist.constraints`, an array with
// one entry `[relation, left, right]` for each. A relation is one of == != <= < >= >. A side is an
// integer, the name of a symbol, or `[operator, left, right]` with an operator of the manifest of
// an artifact (docs/manifest.md): add, sub, mul, floordiv, ceildiv, mod, min, max.
//
//   dist.constraints = [["==", ["mod", "batch", 4], 0], ["<=", "batch", "rows"]]
#ifndef SHARDC_DIALECTS_DIST_CONSTRAINTS_H
#define SHARDC_DIALECTS_DIST_CONSTRAINTS_H

#include "mlir/IR/Operation.h"

namespace shardc::dist {

inline constexpr llvm::StringLiteral kConstraintsAttr = "dist.constraints";

/// Whether `value` has the form above and names declared symbols only; reports at `op`.
mlir::LogicalResult verifyConstraints(mlir::Operation *op, mlir::Attribute value);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_CONSTRAINTS_H
