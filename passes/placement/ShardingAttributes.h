// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What propagation found, as `dist.sharding` on the ops, arguments and results of a function, and
// back. Nothing else goes from dist-propagate to dist-place.
#ifndef SHARDC_PASSES_PLACEMENT_SHARDINGATTRIBUTES_H
#define SHARDC_PASSES_PLACEMENT_SHARDINGATTRIBUTES_H

#include "passes/placement/FunctionGraph.h"

namespace shardc {

/// Writes one to every tensor of the function. Linear in the tensors; an attribute is made once for
/// all tensors that are asked the same.
void writeShardings(const FunctionGraph &function, const Propagation &propagation);

/// Reads them. Fails, after reporting all that is wrong: tensors that have none, another mesh than
/// the module's, and what cannot be placed as it says (see checkStates).
mlir::FailureOr<Propagation> readShardings(const FunctionGraph &function);

/// Takes them off the function.
void removeShardings(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_SHARDINGATTRIBUTES_H
