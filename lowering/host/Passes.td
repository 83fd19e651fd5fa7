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

    An entry is one call after the other, thousands in a large model, so each is as short as it can be. Fields of the
    frame and addresses of services are loaded once, where the entry begins. What is known of a matrix product is constant
    data, one for all products that are alike, which the entry copies. Failures of services leave the entry at one place.

    In this example, inputs and outputs are lists of pointers, which the frame has at bytes 32 and 48.

    Before:
    ```mlir
    module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<"vector_bytes" = 32 : i64>>} {
      func.func @f(%x: memref<8xf32> {exec.argument = #exec.argument<input>}, %y: memref<8xf32> {exec.argument = #exec.argument<output>})
          attributes {exec.arena_bytes = 0 : i64, exec.entry} {
        exec.launch @relu(%x, %y) name "relu" : memref<8xf32>, memref<8xf32>
        return
      }
      llvm.func @relu(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {exec.kernel}
    }
    ```
    After, in part:
    ```mlir
    module attributes {...exec.collectives = [], exec.groups = [], exec.ops = [["relu", ...
      llvm.func @f(%frame: !llvm.ptr) -> i32 attributes {exec.arena_bytes = 0 : i64, exec.entry} {
        %inputs_at = llvm.getelementptr %frame[32] ...
        %inputs = llvm.load %inputs_at : !llvm.ptr -> !llvm.ptr
        %outputs_at = llvm.getelementptr %frame[48] ...
        %outputs = llvm.load %outputs_at : !llvm.ptr -> !llvm.ptr
        ...
        %x_at = llvm.getelementptr %inputs[0] ...
        %x = llvm.load %x_at : !llvm.ptr -> !llvm.ptr
        %y_at = llvm.getelementptr %outputs[0] ...
        %y = llvm.load %y_at : !llvm.ptr -> !llvm.ptr
        ...
        %location = llvm.mlir.addressof ... : !llvm.ptr
        ...
        llvm.call @relu(%frame, %location, %x, %y) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
        %ok = llvm.mlir.constant(0 : i32) : i32
        llvm.return %ok : i32
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"functions", "functions", "Entries and plan functions converted">,
                    Statistic<"launches", "launches", "Launches of kernels">,
                    Statistic<"collectives", "collectives", "Collectives started">];
}

#endif // SHARDC_LOWERING_HOST_PASSES_TD
