// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/Passes.h"

#include "dialects/exec/Exec.h"
#include "lowering/artifact/Passes.h"
#include "lowering/cpu/CpuTarget.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/Passes.h"
#include "lowering/linalg/Passes.h"
#include "lowering/memory/Passes.h"
#include "lowering/target/Passes.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

void shardc::registerTargets() {
  static bool done = [] {
    target::registerBackend(cpu::createBackend());
    return true;
  }();
  (void)done;
}

void shardc::registerLoweringPasses() {
  target::registerShardcTargetPasses();
  registerShardcLinalgPasses();
  memory::registerShardcMemoryPasses();
  host::registerShardcHostPasses();
  cpu::registerShardcCpuPasses();
  cpu::registerPipelines();
  artifact::registerShardcArtifactPasses();
}

void shardc::registerLoweringDialects(mlir::DialectRegistry &registry) {
  registry.insert<exec::ExecDialect, mlir::DLTIDialect, mlir::ub::UBDialect>();
}
