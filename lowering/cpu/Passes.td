// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CPU_PASSES_TD
#define SHARDC_LOWERING_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def CpuTileKernels : Pass<"cpu-tile-kernels", "::mlir::func::FuncOp"> {
  let summary = "Turns fused kernels on tensors into parallel loops over tiles in memory";
  let description = [{
    A fused kernel reads tensors of its memref arguments (`bufferization.to_tensor`), computes with linalg ops,
    and writes results to other arguments (`bufferization.materialize_in_destination`). All ops of the kernel are
    tiled together: loop dims that index the same dim of a value are one dim of the kernel, and a dim is
    tiled where no op reduces it and every result has it. A tile of a result is computed in place; a tile of a
    temporary has a small buffer. A row of softmax or layer norm is thus computed by a few short loops over
    data that stays in the L1 cache.

    ```mlir
    // Before
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
      %1 = linalg.generic ... sum over d1 ... -> tensor<8xf32>
      %2 = linalg.generic ... ins(%0, %1) ... -> tensor<8x64xf32>
      bufferization.materialize_in_destination %2 in restrict writable %y
      return
    }
    // After
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      exec.parallel %i to %c8 grain 256 {
        %sum = memref.alloc() : memref<1xf32>
        linalg.generic ... ins(%row_of_x) outs(%sum)
        linalg.generic ... ins(%row_of_x, %sum) outs(%row_of_y)
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"tiledKernels", "tiled-kernels", "Kernels tiled">,
                    Statistic<"temporaries", "temporaries", "Values that need a buffer of their own">];
}

def CpuExpandAttention : Pass<"cpu-expand-attention", "::mlir::ModuleOp"> {
  let summary = "Turns attention into launches of a kernel that computes it tile by tile";
  let description = [{
    Equal ones, as in the layers of a model, share a kernel. A tile is some queries of one head: scores of some keys, their
    softmax relative to the largest score so far, and their part of the result are computed in turn, so that the scores of
    a row never exist as a whole. Vectors and the number of registers that the inner products fill are the target's.

    Before:

    ```mlir
    func.func @f(%q: memref<2x8x16x64xf32>, %k: memref<2x2x16x64xf32>, %v: memref<2x2x16x64xf32>, %o: memref<2x8x16x64xf32>) {
      exec.attention %q, %k, %v -> %o causal scale 0.125 name "attention"
          : memref<2x8x16x64xf32>, memref<2x2x16x64xf32>, memref<2x2x16x64xf32> -> memref<2x8x16x64xf32>
      return
    }
    ```

    After, in part:

    ```mlir
    func.func @f(%q: memref<2x8x16x64xf32>, %k: memref<2x2x16x64xf32>, %v: memref<2x2x16x64xf32>, %o: memref<2x8x16x64xf32>) {
      exec.launch @attention(%q, %k, %v, %o) name "attention" : ...
    func.func private @attention(...) attributes {exec.kernel, exec.writes = array<i64: 3>} {
      exec.parallel ...
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Attentions that became launches">,
                    Statistic<"kernels", "kernels", "Kernels made for them">];
}

def CpuExpandScatter : Pass<"cpu-expand-scatter", "::mlir::ModuleOp"> {
  let summary = "Turns additions at computed positions into launches of kernels";
  let description = [{
    The kernel copies the tensor on several threads, by its first dim, and then adds one element after the other on one thread, so
    that the result is the same on every run.

    Before:

    ```mlir
    func.func @f(%x: memref<10x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64, strided<[1, 0]>>, %o: memref<10x8xf32>) {
      exec.scatter_add %x, %v at %i -> %o loops [-1, 1] "index out of range" name "index_put"
          : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64, strided<[1, 0]>> -> memref<10x8xf32>
      return
    }
    ```

    After, in part:

    ```mlir
    func.func @f(%x: memref<10x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64, strided<[1, 0]>>, %o: memref<10x8xf32>) {
      exec.launch @scatter_add(%x, %v, %i, %o) name "index_put" : ...
    func.func private @scatter_add(...) attributes {exec.kernel, exec.writes = array<i64: 3>} {
      exec.parallel ...
      scf.for ...
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops that became launches">];
}

def CpuApproximateMath : Pass<"cpu-approximate-math", "::mlir::func::FuncOp"> {
  let summary = "Allows reordering of reductions in kernels, and expands functions into polynomials";
  let description = [{
    LLVM's vectoriser needs two changes before it can work on kernels. The op that combines the elements of a reduction
    gets the fast-math flags `reassoc contract nsz`: sums may be taken in any order, as in PyTorch. All other arithmetic
    stays exactly as IEEE 754 defines it. `exp`, `tanh`, `erf`, `log` and similar functions become polynomials on f32; on other
    types they stay calls of the C library.

    ```mlir
    %y = math.exp %x : f32   // before
    ...                      // after: range reduction and a polynomial of degree 5
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
  let statistics = [Statistic<"reordered", "reordered", "Combinations of reductions that may be reordered">,
                    Statistic<"expanded", "expanded", "Functions that became polynomials">];
}

def CpuConvertToLlvm : Pass<"cpu-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Converts kernels to LLVM's dialect";
  let description = [{
    Linalg ops must be loops already, and kernels must have their binary interface (`cpu-outline-parallel`). An
    `exec.parallel_call` becomes a call of the runtime's service of that name through the frame, with a function that
    unpacks the arguments; an `exec.fail_if` becomes a call of the service `fail`.

    ```mlir
    exec.fail_if %bad, "index out of range"                                      // before
      llvm.cond_br %bad, ^fail, ^go                                              // after
    ^fail:
      llvm.call %service(%runtime, %location, %message) : ... -> i32
      llvm.br ^go
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"functions", "functions", "Functions converted">,
                    Statistic<"tasks", "tasks", "Parallel calls that got a task for the runtime's threads">];
}

def CpuOutlineParallel : Pass<"cpu-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Gives kernels their binary interface, and bodies of parallel loops functions of their own";
  let description = [{
    The body of each `exec.parallel` becomes a function, whose arguments are the values that it uses and a range of iterations. Arguments
    that are memrefs become a pointer (`memref<T>`), marked `llvm.noalias`, and one index for each size and
    stride that is not static; a kernel's offsets are always 0. A kernel's first two arguments are the frame
    of the run and the location of the launch, for the runtime's services. Buffers allocated in the loop are allocated
    once for the range: on the stack up to `max-stack-bytes` for each function, else as scratch memory that the
    runtime keeps for each thread.

    ```mlir
    // Before
    func.func @k(%x: memref<?x64xf32>) attributes {exec.kernel} {
      exec.parallel %i to %n grain 16 {
        %t = memref.alloc() : memref<64xf32>
        ...
      }
      return
    }
    // After
    func.func @k(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32> {llvm.noalias}, %x_size: index)
        attributes {exec.kernel} {
      exec.parallel_call @k_body(%x, %x_size) to %n grain 16 : memref<f32>, index
      return
    }
    func.func private @k_body(%x: memref<f32> {llvm.noalias}, %x_size: index, %begin: index, %end: index) {
      %0 = memref.reinterpret_cast %x to offset: [0], sizes: [%x_size, 64], strides: [64, 1] ...
      %t = memref.alloca() : memref<64xf32>
      scf.for %i = %begin to %end step %c1 { ... }
      return
    }
    ```
  }];
  let options = [Option<"maxStackBytes", "max-stack-bytes", "int64_t", "131072",
                        "Largest number of bytes of buffers on the stack of one function">];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"bodies", "bodies", "Loop bodies outlined">,
                    Statistic<"scratch", "scratch", "Temporaries that are too large for the stack">];
}

#endif // SHARDC_LOWERING_CPU_PASSES_TD
