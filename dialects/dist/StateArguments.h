// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which results of a function belong to its arguments: new values of parameters, buffers and
// states, and gradients.

#ifndef SHARDC_DIALECTS_DIST_STATEARGUMENTS_H
#define SHARDC_DIALECTS_DIST_STATEARGUMENTS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc::dist {

/// By result: the number of the argument whose new value it is (kinds "parameter_mutation",
/// "buffer_mutation" and "state_mutation": the argument of that name that is no input). None for
/// other results, and where no argument has the name.
llvm::SmallVector<std::optional<unsigned>> findStateArguments(mlir::FunctionOpInterface function);

/// By result: the number of the argument that it is the gradient of (kind "gradient": any argument
/// of that name and type). None for other results.
llvm::SmallVector<std::optional<unsigned>>
findGradientArguments(mlir::FunctionOpInterface function);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_STATEARGUMENTS_H
