// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_SCATTER_PASSES_TD
#define SHARDC_LOWERING_CUDA_SCATTER_PASSES_TD

include "mlir/Pass/PassBase.td"

def CudaExpandScatter : Pass<"cuda-expand-scatter", "::mlir::ModuleOp"> {
  let summary = "Turns writes at computed positions, sorts and products by index into launches of kernels without atomics";
  let description = [{
    Dims of the result along which no position changes are columns, the others number its rows. A first launch finds the
    row of each update; a position that is out of range is a failure, and its update gets the number behind the last row.
    A stable radix sort, of 8 bits a pass and three launches each, puts updates in the order of their rows. In the last
    launch each element of the result is the sum of one thread: it looks up where the updates of its row begin and end, by
    bisection, and adds them in row-major order of the domain. So every sum has the order and the roundings that
    `exec.scatter` asks for, and results are the same bits on every run and those of a CPU.

    A sort along a dim is the same radix sort of all elements, by an integer made of the element and by the number of its row;
    a last launch reads the first elements of each row where they were. Its numbers are i64.

    Products of rows with the matrices that they name are one launch with a thread for each element of the result. For sums
    of outer products, rows are sorted by their matrix first, and each element of the result adds up the rows of its own,
    in order. Elements shorter than f32 are added up in f32.

    Numbers of elements are i32 where the sizes prove that they fit, else i64. Static shared memory is at most 18 KiB of a
    block. Memory of the kernel are two buffers of two numbers for each update, and 256 numbers for each 2048 of them.

    Before:

    ```mlir
    func.func @f(%x: memref<10x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64, strided<[1, 0]>>, %o: memref<10x8xf32>) {
      exec.scatter %x, %v at %i -> %o loops [-1, 1] "index out of range" name "index_put"
          : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64, strided<[1, 0]>> -> memref<10x8xf32>
      return
    }
    ```

    After, in part:

    ```mlir
    func.func @f(%x: memref<10x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64, strided<[1, 0]>>, %o: memref<10x8xf32>) {
      exec.launch @scatter_add(%x, %v, %i, %o) name "index_put" : ...
    func.func private @scatter_add(...) attributes {exec.kernel, exec.writes = array<i64: 3>} {
      %keys = memref.alloc() : memref<8xi32>
      ...
      gpu.launch ...
        ...
        exec.fail_if ... "index out of range"
      ...
      scf.for ...
        gpu.launch ...
        ...
        gpu.launch ...
        ...
        gpu.launch ...
      ...
      gpu.launch ...
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops that became launches">];
}

#endif // SHARDC_LOWERING_CUDA_SCATTER_PASSES_TD
