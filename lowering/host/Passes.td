// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_HOST_PASSES_TD
#define SHARDC_LOWERING_HOST_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitProgram : Pass<"exec-emit-program", "::mlir::ModuleOp"> {
  let summary = "Converts entries to LLVM's dialect, and collects the tables of the program";
  let description = [{
    An entry becomes a function of the runtime's frame (runtime/abi/shardrt_program.h), which gives it memory and
    services; so does its plan function. Kernels must have been lowered (`exec-lower-to-target`), and the module's
    target says what a launch becomes; all else is the same for every target. Groups, collectives
    and names of what the entries run become attributes of the module, from which the artifact's tables are made.

    ```mlir
    exec.launch @relu(%0, %1) : memref<8x32xf32>, memref<8x32xf32>                    // before
    llvm.call @relu(%frame, %location, %0, %1) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()  // after, for a CPU
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"functions", "functions", "Entries and plan functions converted">,
                    Statistic<"launches", "launches", "Launches of kernels">,
                    Statistic<"collectives", "collectives", "Collectives started">];
}

#endif // SHARDC_LOWERING_HOST_PASSES_TD
