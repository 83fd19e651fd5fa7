// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_ATTENTION_PASSES_TD
#define SHARDC_LOWERING_CUDA_ATTENTION_PASSES_TD

include "mlir/Pass/PassBase.td"

def CudaExpandAttention : Pass<"cuda-expand-attention", "::mlir::ModuleOp"> {
  let summary = "Turns attention into launches of device kernels that compute it tile by tile";
  let description = [{
    Equal ones, as in the layers of a model, share a kernel. A block of threads has some queries of one head in shared
    memory; tiles of keys and values pass by, and scores of a tile, their softmax relative to the largest score so far, and
    their part of the result are computed in registers, so that the scores of a row never exist as a whole. 16-bit
    numbers are multiplied by the matrix units (`mma.sync`) and summed up in f32; f32 and f64 in multiply-adds. Tiles come
    by asynchronous copies of 16 bytes where the memory is aligned, which the kernel looks at when it runs, and else element
    by element.

    Where heads of queries share heads of keys, a block of the forward has the queries of all of them, so that keys are read
    once. Where that leaves multiprocessors without work, as in a decode step, blocks divide the keys too: a block leaves
    its sums, its largest score and its sum of weights in a temporary, and a second launch combines the parts, by rising
    number. There are as many parts as 132 multiprocessors (an H100's; every chip divides alike, for the same bits) can have
    blocks for at once (2 to 4 each), and a part has at least 128 keys. Where sizes are known only when the program runs, the
    host divides by the same rule then, and takes the kernel of one launch where the keys are not divided.

    The backward (`exec.attention_backward`) computes the weights of a tile again from the logsumexp of its queries. It is three
    launches: the sums of grad_out * out of each query into a temporary, the cotangents of queries, and those of keys and
    values, where a block has some keys and the queries of all heads that share them pass by. No sum is shared by blocks, so
    that every run gives the same bits.

    Tiles are chosen by the sizes of a head, which must be known and at most 256, so that a block needs at most 99 KiB of
    shared memory. All other sizes and all strides may be dynamic.

    Before:

    ```mlir
    func.func @f(%q: memref<2x8x16x64xbf16>, %k: memref<2x2x16x64xbf16>, %v: memref<2x2x16x64xbf16>, %o: memref<2x8x16x64xbf16>) {
      exec.attention %q, %k, %v -> %o causal scale 0.125 name "attention"
          : memref<2x8x16x64xbf16>, memref<2x2x16x64xbf16>, memref<2x2x16x64xbf16> -> memref<2x8x16x64xbf16>
      return
    }
    ```

    After, in part:

    ```mlir
    func.func @f(%q: memref<2x8x16x64xbf16>, %k: memref<2x2x16x64xbf16>, %v: memref<2x2x16x64xbf16>, %o: memref<2x8x16x64xbf16>) {
      exec.launch @attention(%q, %k, %v, %o) name "attention" : ...
    func.func private @attention(...) attributes {exec.kernel, exec.writes = array<i64: 3>} {
      gpu.launch blocks(...) in (...) threads(...) in (...) workgroup(...) {
        ...
        nvgpu.device_async_copy ...
        nvgpu.ldmatrix ...
        nvvm.mma.sync ...
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::gpu::GPUDialect", "::mlir::nvgpu::NVGPUDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"multiprocessors", "multiprocessors", "int64_t", /*default=*/"132",
                        "Blocks divide the keys of few queries until that many multiprocessors are busy">];
  let statistics = [Statistic<"expanded", "expanded", "Attentions that became launches">,
                    Statistic<"kernels", "kernels", "Kernels made for them">,
                    Statistic<"divided", "divided", "Kernels of the forward whose blocks may divide keys">];
}

#endif // SHARDC_LOWERING_CUDA_ATTENTION_PASSES_TD
