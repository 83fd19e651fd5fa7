// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that decide where tensors are in memory, for all targets.

#ifndef SHARDC_LOWERING_MEMORY_PASSES_H
#define SHARDC_LOWERING_MEMORY_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::memory {

/// How the tensors of a bucket are handed to the communicator.
enum class BucketForm { Auto, Grouped, Packed };

#define GEN_PASS_DECL
#include "lowering/memory/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/memory/Passes.h.inc"

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_PASSES_H
