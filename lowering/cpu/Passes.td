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

    The kernel of this example divides each row by its sum.

    Before:
    ```mlir
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%0 : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
      ^bb0(%a: f32, %s: f32):
        %1 = arith.addf %s, %a : f32
        linalg.yield %1 : f32
      } -> tensor<8xf32>
      %t = tensor.empty() : tensor<8x64xf32>
      %2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%0, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%t : tensor<8x64xf32>) {
      ^bb0(%a: f32, %s: f32, %out: f32):
        %1 = arith.divf %a, %s : f32
        linalg.yield %1 : f32
      } -> tensor<8x64xf32>
      bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
      return
    }
    ```
    After, in part:
    ```mlir
    func.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
      %c8 = arith.constant 8 : index
      exec.parallel %i to %c8 grain ... {
        %sum = memref.alloc() : memref<1xf32>
        linalg.fill ... outs(%sum : memref<1xf32>)
        %x_row = memref.subview %x[%i, 0] [1, 64] [1, 1] : ...
        linalg.generic ... ins(%x_row : ...) outs(%sum : memref<1xf32>) {
        ...
        %x_again = memref.subview %x[%i, 0] [1, 64] [1, 1] : ...
        %y_row = memref.subview %y[%i, 0] [1, 64] [1, 1] : ...
        linalg.generic ... ins(%x_again, %sum : ...) outs(%y_row : ...) {
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
    a row never exist as a whole. The backward (`exec.attention_backward`) computes the weights of a tile again from the
    logsumexp of its queries; its tasks are heads of keys, so that each sum has one order. Vectors and the number of registers that the inner products fill are the target's.

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
    The kernel copies the tensor on several threads, by its first dim, looks whether all positions are in range, and adds one
    element after the other. Threads share the sums by the longest dim of the result that has no computed positions: each
    adds to elements of its own, in one order, so that the result is the same on every run and any number of threads. Where
    there is no such dim, one thread adds.

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
      exec.parallel ...
      scf.for ...
      exec.parallel ...
        scf.for ...
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops that became launches">];
}

def CpuExpandSort : Pass<"cpu-expand-sort", "::mlir::ModuleOp"> {
  let summary = "Turns sorts into launches of a kernel that merges runs";
  let description = [{
    Threads share the rows, which are in memory of a thread while they are sorted. Elements become integers of their width (of 32
    bits at least for floats) that compare as the elements are to stand. Where at most 64 elements of a row are kept, and at
    most a quarter, each element goes to its place among those that are kept; else runs of 1, 2, 4 ... elements are merged.
    Both are stable.

    Before:

    ```mlir
    func.func @f(%x: memref<4x100xf32>, %v: memref<4x8xf32>, %p: memref<4x8xi64>) {
      exec.sort %x -> %v, %p dim 1 descending name "topk" : memref<4x100xf32> -> memref<4x8xf32>, memref<4x8xi64>
      return
    }
    ```

    After, in part:

    ```mlir
    func.func @f(%x: memref<4x100xf32>, %v: memref<4x8xf32>, %p: memref<4x8xi64>) {
      exec.launch @sort(%x, %v, %p) name "topk" : ...
    func.func private @sort(...) attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
      exec.parallel %row to %c4 grain ... {
        %keys = memref.alloc() : memref<8xi32>
        %places = memref.alloc() : memref<8xindex>
        scf.for %i = %c0 to %c100 step %c1 {
          ...
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

    In this example, the exponential becomes a polynomial of a small number, times a power of two.

    Before:
    ```mlir
    func.func @sum_of_exp(%x: memref<64xf32>, %y: memref<f32>) attributes {exec.kernel} {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
          ins(%x : memref<64xf32>) outs(%y : memref<f32>) {
      ^bb0(%a: f32, %sum: f32):
        %e = math.exp %a : f32
        %s = arith.addf %sum, %e : f32
        linalg.yield %s : f32
      }
      return
    }
    ```
    After, in part:
    ```mlir
    ^bb0(%a: f32, %sum: f32):
      ...
      %p = math.fma %q, %small, %coefficient : f32
      ...
      %polynomial = arith.addf ... : f32
      ...
      %power = arith.bitcast ... : i32 to f32
      %e = arith.mulf %polynomial, %power : f32
      %s = arith.addf %sum, %e fastmath<reassoc,nsz,contract> : f32
      linalg.yield %s : f32
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
    unpacks the arguments; an `exec.fail_if` becomes a call of the service `fail`. No function is inlined later: what LLVM
    knows about the aliasing of a body's arguments holds in the body only, and an entry launches one kernel in many places.

    Before:
    ```mlir
    func.func @k(%frame: !llvm.ptr, %location: !llvm.ptr, %bad: i1) attributes {exec.kernel} {
      exec.fail_if %bad, "index out of range"
      return
    }
    ```
    After, in part:
    ```mlir
    llvm.mlir.global internal constant ...("index out of range...
    llvm.func @k(%frame: !llvm.ptr, %location: !llvm.ptr, %bad: i1) attributes {exec.kernel, no_inline} {
      llvm.cond_br %bad, ^bb1, ^bb2
    ^bb1: ...
      %message = llvm.mlir.addressof ... : !llvm.ptr
      ...
      %runtime = llvm.load ... : !llvm.ptr -> !llvm.ptr
      ...
      %fail = llvm.load ... : !llvm.ptr -> !llvm.ptr
      %status = llvm.call %fail(%runtime, %location, %message) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
      llvm.br ^bb2
    ^bb2: ...
      llvm.return
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

    Before:
    ```mlir
    func.func @k(%x: memref<?x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 0>} {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x64xf32>
      exec.parallel %i to %n grain 16 {
        %t = memref.alloc() : memref<1x64xf32>
        %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<?x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
        linalg.exp ins(%row : memref<1x64xf32, strided<[64, 1], offset: ?>>) outs(%t : memref<1x64xf32>)
        linalg.add ins(%t, %t : memref<1x64xf32>, memref<1x64xf32>) outs(%row : memref<1x64xf32, strided<[64, 1], offset: ?>>)
      }
      return
    }
    ```
    After, in part:
    ```mlir
    func.func @k(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32> {llvm.noalias}, %x_size: index)
      ...
      %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata ...
      exec.parallel_call @k_body(%base, %sizes#0) to %n grain 16 : memref<f32>, index
      return
    func.func private @k_body(%x_body: memref<f32> {llvm.noalias}, %size_body: index, %begin: index, %end: index) {
      %rows = memref.reinterpret_cast %x_body to offset: [0], sizes: [%size_body, 64], strides: [64, 1] : ...
      %t = memref.alloca() {alignment = 64 : i64} : memref<1x64xf32>
      scf.for %i = %begin to %end step %c1 {
        %row = memref.subview %rows[%i, 0] [1, 64] [1, 1] : ...
        linalg.exp ins(%row : ...) outs(%t : memref<1x64xf32>)
        linalg.add ins(%t, %t : ...) outs(%row : ...)
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
