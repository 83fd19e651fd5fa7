// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/Passes.h"

#include "dialects/exec/Exec.h"
#include "lowering/artifact/Passes.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/Passes.h"
#include "lowering/linalg/Passes.h"
#include "lowering/memory/Passes.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

void shardc::registerLoweringPasses() {
  registerShardcLinalgPasses();
  memory::registerShardcMemoryPasses();
  host::registerShardcHostPasses();
  cpu::registerShardcCpuPasses();
  cpu::registerPipelines();
  artifact::registerShardcArtifactPasses();
}

void shardc::registerLoweringDialects(mlir::DialectRegistry &registry) {
  registry.insert<exec::ExecDialect, mlir::ub::UBDialect>();
}
