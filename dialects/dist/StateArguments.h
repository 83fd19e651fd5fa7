// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which results of a function are new values of its buffers.

#ifndef SHARDC_DIALECTS_DIST_STATEARGUMENTS_H
#define SHARDC_DIALECTS_DIST_STATEARGUMENTS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc::dist {

/// By result: the number of the argument whose new value it is (kind "buffer_mutation": the
/// parameter or buffer of that name). None for other results, and where no argument has the name.
llvm::SmallVector<std::optional<unsigned>> findStateArguments(mlir::FunctionOpInterface function);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_STATEARGUMENTS_H
