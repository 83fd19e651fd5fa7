// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `dist.sharding`: what dist-propagate found, where it stands in the IR.

#ifndef SHARDC_DIALECTS_DIST_SHARDINGS_H
#define SHARDC_DIALECTS_DIST_SHARDINGS_H

#include "dialects/dist/Dist.h"
#include "dialects/sharding/Sharding.h"

namespace shardc::dist {

/// On an op a list with a #dist.sharding for each result; on an argument or result of a function
/// one #dist.sharding. Between dist-propagate and dist-place alone.
inline constexpr llvm::StringLiteral kShardingAttr = "dist.sharding";

/// Whether `value` is a #dist.sharding that fits the type of an argument or result of a function.
mlir::LogicalResult verifySharding(mlir::Attribute value, mlir::Type type,
                                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// The same of the list on an op.
mlir::LogicalResult verifyShardings(mlir::Operation *op, mlir::Attribute value);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_SHARDINGS_H
