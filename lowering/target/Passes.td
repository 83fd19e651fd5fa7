// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_TARGET_PASSES_TD
#define SHARDC_LOWERING_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"exec-set-target", "::mlir::ModuleOp"> {
  let summary = "Writes what the module is compiled for into the module";
  let description = [{
    Lowering begins with it. The target becomes the one device of `dlti.target_system_spec`, with all limits that later
    passes ask for: which ops share a kernel, when buckets are packed, how buffers are aligned, how large tiles are. So each of
    these passes does on the printed module what it did in the pipeline, on any machine. A limit may be edited in
    the text; one that is unknown or out of range is an error of the pass that reads it. Passes take the defaults for a module
    without a target.

    Before, with `target=cpu:x86-64-v3`:

    ```mlir
    module {}
    ```

    After, in part:

    ```mlir
    module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<"chip" = "x86-64-v3", ... "vector_bytes" = 32 : i64, ... "buffer_alignment" = 64 : i64, ...
    ```
  }];
  let options = [Option<"spec", "target", "std::string", "\"cpu\"",
                        "What to compile for: the name of a target, or NAME:CHIP, e.g. cpu:x86-64-v3">];
  let dependentDialects = ["::mlir::DLTIDialect"];
  let statistics = [Statistic<"numLimits", "limits", "Limits of the target that the module names">];
}

def LowerToTarget : Pass<"exec-lower-to-target", "::mlir::ModuleOp"> {
  let summary = "Lowers the kernels of a planned module as its target does";
  let description = [{
    Runs the passes of the target that `exec-set-target` wrote into the module: these turn kernels of aten ops into what the
    target serialises. Entries and plan functions stay as they are, for `exec-emit-program`.

    Before:

    ```mlir
    module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<"vector_bytes" = 64 : i64>>} {
      func.func private @twice(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
        %0 = bufferization.to_tensor %x restrict : memref<8xf32> to tensor<8xf32>
        %1 = aten.add %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
        return
      }
    }
    ```

    After, in part:

    ```mlir
    llvm.func @twice(%frame: !llvm.ptr, %location: !llvm.ptr, %x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}) ...
      %value = llvm.load ... : !llvm.ptr -> f32
      %sum = llvm.fadd %value, ... : f32
      llvm.store %sum, ...
    ```
  }];
  let statistics = [Statistic<"numKernels", "kernels", "Kernels that were lowered">];
}

#endif // SHARDC_LOWERING_TARGET_PASSES_TD
