// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_MEMORY_PASSES_TD
#define SHARDC_LOWERING_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffers : Pass<"exec-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of an entry memory, and turns its ops into calls of the runtime";
  let description = [{
    The program must be of the local or scheduled stage, after `exec-form-kernels`, and the extents of its collectives static
    (`dist-specialize`) or symbolic. It becomes straight-line code over memrefs: kernel launches, matrix products, collectives.
    Views are reinterpretations of memory; a reshape that strides cannot express is a copy. Where all readers of a value
    permute its dims and then need it dense, it is computed in that order. Results of the entry are computed in the
    caller's buffers, and operands of a concatenation in their part of its result, unless their place is fixed already.
    Kernels take their arguments' strides from the memory they are launched on.

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
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let statistics = [Statistic<"buffers", "buffers", "Tensors that got a buffer of their own">,
                    Statistic<"launches", "launches", "Launches of kernels, copies included">];
}

def MergeKernels : Pass<"exec-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "Keeps one copy of kernels that are equal";
  let description = [{
    Two kernels are equal if they differ in nothing but names and locations. The layers of a model then share their kernels, which are
    compiled once.

    ```mlir
    exec.launch @add_layer_norm(...)      // before
    exec.launch @add_layer_norm_1(...)
    exec.launch @add_layer_norm(...)      // after
    exec.launch @add_layer_norm(...)
    ```
  }];
  let statistics = [Statistic<"kernels", "kernels", "Kernels before">,
                    Statistic<"merged", "merged", "Kernels that another one replaced">];
}

def PackBuckets : Pass<"exec-pack-buckets", "::mlir::ModuleOp"> {
  let summary = "Packs the tensors of a bucket into one buffer, where that is cheaper than a group of tensors";
  let description = [{
    The pass runs after `exec-assign-buffers` and before `exec-plan-arena`. Without it, a variadic collective is handed to the
    communicator as a group of tensors, each read and written where it is: nothing is copied, but every tensor costs
    `tensor-overhead`. In a packed bucket the tensors are parts of one vector. Where possible, operands are computed in the vector
    and results are read from it in place; all others are copied in before the start and out after the wait. On the side of a gather
    or scatter that has the parts of all ranks, tensors are in pieces and always copied. `auto` packs a bucket where the copies
    take less time than the overhead that is saved.

    A bucket stays a group if it has mixed element types or sizes that are known only at the run, if it is an all-to-all or a
    permute, or if the entry returns one of its futures.

    ```mlir
    // Before
    exec.launch @relu(%x, %0)
    exec.launch @relu(%y, %1)
    exec.collective all_reduce sum over #tp(%0, %1 : memref<4xf32>, memref<5xf32>) -> (...)
    // After
    %b = exec.alloc : memref<9xf32>
    exec.launch @relu(%x, %b[0 : 4])      // as memref.reinterpret_cast
    exec.launch @relu(%y, %b[4 : 9])
    exec.collective all_reduce sum over #tp(%b : memref<9xf32>) -> (...)
    ```
  }];
  let options = [
    Option<"form", "form", "::shardc::memory::BucketForm", "::shardc::memory::BucketForm::Auto", "How buckets are handed to the communicator",
           [{::llvm::cl::values(
             clEnumValN(::shardc::memory::BucketForm::Auto, "auto", "whichever costs less"),
             clEnumValN(::shardc::memory::BucketForm::Grouped, "grouped", "as a group of tensors"),
             clEnumValN(::shardc::memory::BucketForm::Packed, "packed", "as one buffer, wherever that is possible"))}]>,
    Option<"tensorOverhead", "tensor-overhead", "double", "300", "Nanoseconds that the communicator takes for each further tensor of a group">,
    Option<"launchOverhead", "launch-overhead", "double", "300", "Nanoseconds that a launch of a copy takes">,
    Option<"copyBandwidth", "copy-bandwidth", "double", "6", "Bytes copied per nanosecond (GB/s), where reading and writing a byte counts once">];
  let statistics = [Statistic<"packed", "packed", "Buckets that became one buffer">,
                    Statistic<"grouped", "grouped", "Buckets that stayed a group of tensors">,
                    Statistic<"copiedBytes", "copied-bytes", "Bytes copied into and out of buckets">,
                    Statistic<"inPlaceBytes", "in-place-bytes", "Bytes computed or used in buckets in place">];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::bufferization::BufferizationDialect"];
}

def PlanArena : Pass<"exec-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Places all buffers of an entry in one arena";
  let description = [{
    A buffer lives from its first to its last use; a buffer that a collective in flight reads or writes lives until the wait. Two
    buffers that live at the same time do not overlap. Static sizes give constant offsets. With symbolic sizes, a plan
    function evaluates the offsets for given symbols; the order of buffers in the arena is then that of representative sizes.

    ```mlir
    %0 = exec.alloc : memref<8x64xf32>            // before
    %0 = exec.alloc at 4096 : memref<8x64xf32>    // after
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::exec::ExecDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes", "Bytes of all arenas">,
                    Statistic<"peakBytes", "peak-bytes", "Largest number of bytes that live at once, below which no arena can be">];
}

def AccountMemory : Pass<"exec-account-memory", "::mlir::ModuleOp"> {
  let summary = "Writes the memory that one rank needs to every entry";
  let description = [{
    The pass runs after `exec-plan-arena`. `exec.memory` of an entry has, in bytes, this rank's slice of each parameter, the inputs and
    outputs that the caller gives, the arena, and the largest buffers that live at the peak, with the place in the model
    that fills them. Entries whose sizes depend on symbols that `sizes` does not name get no `exec.memory`. `shardc compile
    --memory-limit` reads it.

    ```mlir
    func.func @f(...) attributes {exec.arena_bytes = 4096 : i64, exec.entry, exec.memory = {
      parameters = array<i64: 2048, 64>, caller = 512 : i64, arena = 4096 : i64, peak = [[4096 : i64, "up (model.py:8)"]]}}
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string",
               "Values of symbols, e.g. sizes=batch=8,sequence=128; the memory is that of the first rank in such a run">];
  let statistics = [Statistic<"accounted", "accounted", "Entries that got exec.memory">,
                    Statistic<"symbolic", "symbolic", "Entries that got none because their sizes depend on symbols">];
}

#endif // SHARDC_LOWERING_MEMORY_PASSES_TD
