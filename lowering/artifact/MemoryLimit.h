// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_ARTIFACT_MEMORYLIMIT_H
#define SHARDC_LOWERING_ARTIFACT_MEMORYLIMIT_H

#include "lowering/artifact/Description.h"

namespace shardc::artifact {

/// Fails, with an account of what takes the memory, if a rank needs more than `limit` bytes for one
/// entry: its slices of all parameters, inputs, outputs and arena. The module has `exec.memory` at
/// its entries, for symbols of these values ("batch=8").
mlir::LogicalResult checkMemoryLimit(mlir::ModuleOp module, const ProgramDescription &program,
                                     uint64_t limit, llvm::ArrayRef<std::string> sizes);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_MEMORYLIMIT_H
