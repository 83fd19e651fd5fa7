// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_MEMORY_PASSES_TD
#define SHARDC_LOWERING_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffers : Pass<"exec-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of an entry memory, and turns its ops into calls of the runtime";
  let description = [{
    The host program becomes straight-line code over memrefs: kernel launches, matrix products, collectives. Views are
    reinterpretations of memory; a reshape that strides cannot express is a copy. Where all readers of a value
    permute its dims and then need it dense, it is computed in that order. Results of the entry are computed in the
    caller's buffers, and operands of a concatenation in their part of it, unless somebody else decides where they are.
    Kernels take their arguments' strides from the memory they are launched on. Form in: local or scheduled stage after
    `form-kernels`, extents of collectives static (`dist-specialize`) or symbolic.

    ```mlir
    // Before
    func.func @f(%x: tensor<8x64xf32>, %w: tensor<32x64xf32>) -> tensor<8x32xf32> {
      %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
      %1 = call @relu(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>
      return %1 : tensor<8x32xf32>
    }
    // After
    func.func @f(%x: memref<8x64xf32>, %w: memref<32x64xf32>, %out: memref<8x32xf32>) attributes {exec.entry} {
      %0 = exec.alloc : memref<8x32xf32>
      %1 = memref.reinterpret_cast %w ... : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64], offset: 0>>
      exec.gemm %x * %1 -> %0 : ...
      exec.launch @relu(%0, %out) : memref<8x32xf32>, memref<8x32xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif // SHARDC_LOWERING_MEMORY_PASSES_TD
