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

    With `target=cpu:x86-64-v3`:

    ```mlir
    // Before
    module {}
    // After
    module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<
        "chip" = "x86-64-v3", "features" = "+avx2,...", "triple" = "x86_64-pc-linux-gnu",
        "vector_bytes" = 32 : i64, "buffer_alignment" = 64 : i64, ...>>} {}
    ```
  }];
  let options = [Option<"spec", "target", "std::string", "\"cpu\"",
                        "What to compile for: the name of a target, or NAME:CHIP, e.g. cpu:x86-64-v3">];
  let dependentDialects = ["::mlir::DLTIDialect"];
}

def LowerToTarget : Pass<"exec-lower-to-target", "::mlir::ModuleOp"> {
  let summary = "Lowers the kernels of a planned module as its target does";
  let description = [{
    Runs the passes of the target that `exec-set-target` wrote into the module: these turn kernels of aten ops into what the
    target serialises. Entries and plan functions stay as they are, for `exec-emit-program`.

    ```mlir
    // Before                                                  // After, for a CPU
    func.func private @k(%x: memref<8xf32>, ...) {             llvm.func @k(%frame: !llvm.ptr, ...) {
      %1 = aten.relu %0 : (tensor<8xf32>) -> tensor<8xf32>       llvm.call ...
    ```
  }];
}

#endif // SHARDC_LOWERING_TARGET_PASSES_TD
