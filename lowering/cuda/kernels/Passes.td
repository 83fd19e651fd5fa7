// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_KERNELS_PASSES_TD
#define SHARDC_LOWERING_CUDA_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CudaTileKernels : Pass<"cuda-tile-kernels", "::mlir::func::FuncOp"> {
  let summary = "Turns fused kernels on tensors into launches on the device";
  let description = [{
    A fused kernel reads tensors of its memref arguments (`bufferization.to_tensor`), computes with linalg ops,
    and writes results to other arguments (`bufferization.materialize_in_destination`). It becomes one `gpu.launch`, or
    several in order, of which each sees what the ones before wrote. Kinds of launches are
    listed in KernelKind.h; each says how many of the ops that are left it computes at once, and the one that takes most of them is
    used. A value that a later launch reads is a result of the kernel, or has a temporary in device memory; a value
    that only its own launch reads exists in registers.

    Elements that are read at computed positions are read where the position is in its range; elsewhere, the run's failure is
    recorded. Positions from which no element may be computed, because results have no elements, get a launch that only checks them.

    All that a kernel has and that cannot be launched is an error, at once.

    Before:
    ```mlir
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
      %e = tensor.empty() : tensor<8x64xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%0 : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
      ^bb0(%a: f32, %out: f32):
        %2 = math.exp %a : f32
        linalg.yield %2 : f32
      } -> tensor<8x64xf32>
      bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
      return
    }
    ```
    After, in part:
    ```mlir
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      gpu.launch ... {
        ...
        math.exp
        ...
        gpu.terminator
      }
      return
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let statistics = [Statistic<"tiledKernels", "tiled-kernels", "Kernels that became launches">,
                    Statistic<"stages", "stages", "Groups of ops that are launched together">,
                    Statistic<"temporaries", "temporaries", "Values that are kept in device memory between launches">];
}

#endif // SHARDC_LOWERING_CUDA_KERNELS_PASSES_TD
