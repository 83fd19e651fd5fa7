// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_MEMORY_PASSES_TD
#define SHARDC_LOWERING_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffers : Pass<"exec-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of an entry memory, and turns its ops into calls of the runtime";
  let description = [{
    The host program becomes straight-line code over memrefs: kernel launches, matrix products, attention, collectives. Views are
    reinterpretations of memory; a reshape that strides cannot express is a copy. Where all readers of a value
    permute its dims and then need it dense, it is computed in that order. Results of the entry are computed in the
    caller's buffers, and operands of a concatenation in their part of its result, unless their place is fixed already.
    An all-reduce of what nothing else reads works in place, in the caller's buffer where its result is returned.
    Kernels take their arguments' strides from the memory they are launched on.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x64xf32>, %w: tensor<32x64xf32>) -> tensor<8x32xf32> {
      %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
      %1 = call @relu(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>
      return %1 : tensor<8x32xf32>
    }
    func.func private @relu(%x: tensor<8x32xf32>) -> tensor<8x32xf32> attributes {exec.kernel} {
      %0 = aten.relu %x : (tensor<8x32xf32>) -> tensor<8x32xf32>
      return %0 : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: memref<8x64xf32> {exec.argument = #exec.argument<input>}, %w: memref<32x64xf32> {exec.argument = #exec.argument<input>},
                 %out: memref<8x32xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
      %0 = exec.alloc : memref<8x32xf32>
      %1 = memref.reinterpret_cast %w to offset: [0], sizes: [64, 32], strides: [1, 64]
          : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
      exec.gemm %x * %1 -> %0 name "linear" : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> -> memref<8x32xf32>
      exec.launch @relu(%0, %out) name "relu" : memref<8x32xf32>, memref<8x32xf32>
      return
    }
    func.func private @relu(%x: memref<8x32xf32>, %y: memref<8x32xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
      %0 = bufferization.to_tensor %x restrict : memref<8x32xf32> to tensor<8x32xf32>
      %1 = aten.relu %0 : (tensor<8x32xf32>) -> tensor<8x32xf32>
      bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8x32xf32>, memref<8x32xf32>) -> ()
      return
    }
    ```
  }];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"buffers", "buffers", "Tensors that got a buffer of their own">,
                    Statistic<"launches", "launches", "Launches of kernels, copies included">];
}

def MergeKernels : Pass<"exec-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "Keeps one copy of kernels that are equal";
  let description = [{
    Two kernels are equal if they differ in nothing but names and locations. The layers of a model then share their kernels, which are
    compiled once.

    Before:
    ```mlir
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) attributes {exec.entry} {
      exec.launch @double(%x, %y) name "first" : memref<4xf32>, memref<4xf32>
      exec.launch @double_1(%y, %z) name "second" : memref<4xf32>, memref<4xf32>
      return
    }
    func.func private @double(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
      linalg.add ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    func.func private @double_1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
      linalg.add ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
    After:
    ```mlir
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) attributes {exec.entry} {
      exec.launch @double(%x, %y) name "first" : memref<4xf32>, memref<4xf32>
      exec.launch @double(%y, %z) name "second" : memref<4xf32>, memref<4xf32>
      return
    }
    func.func private @double(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
      linalg.add ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
  }];
  let statistics = [Statistic<"kernels", "kernels", "Kernels before">,
                    Statistic<"merged", "merged", "Kernels that another one replaced">];
}

def PackBuckets : Pass<"exec-pack-buckets", "::mlir::ModuleOp"> {
  let summary = "Packs the tensors of a bucket into one buffer, where that is cheaper than a group of tensors";
  let description = [{
    After `exec-assign-buffers`, before `exec-plan-arena`. A variadic collective is handed to the communicator as a group of
    tensors, each read and written where it is: nothing is copied, but every tensor costs the target's `tensor_ns`. Packed, its
    tensors are parts of one vector. What is computed for the bucket is computed in the vector, and what is read from
    it is read there (in place); the rest is copied in before the start and out after the wait. On the side of a gather
    or scatter that has the parts of all ranks, tensors are in pieces and always copied. Where every tensor of an all-reduce is
    reduced in place, one vector is both sides, and what the caller gets is copied out of it. `auto` packs where the copies
    take less time than is saved, by the target's `launch_ns`, `copy_bytes_per_ns` and `tensor_ns` (`exec-set-target`).

    A bucket stays a group if it has mixed element types or sizes that are known only at the run, if it is an all-to-all or a
    permute, or if the entry returns one of its futures.

    In this example, kernels write parts of one bucket and read parts of the other; nothing is copied.

    Before:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #tp = #dist.axes<#mesh, ["tp"]>
    func.func @f(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<4xf32> {exec.argument = #exec.argument<input>},
                 %u: memref<4xf32> {exec.argument = #exec.argument<output>}, %v: memref<4xf32> {exec.argument = #exec.argument<output>})
        attributes {exec.entry} {
      %0 = exec.alloc : memref<4xf32>
      %1 = exec.alloc : memref<4xf32>
      exec.launch @relu(%x, %0) name "relu" : memref<4xf32>, memref<4xf32>
      exec.launch @relu(%y, %1) name "relu" : memref<4xf32>, memref<4xf32>
      %2 = exec.alloc : memref<4xf32>
      %3 = exec.alloc : memref<4xf32>
      exec.collective all_reduce sum over #tp (%0, %1 : memref<4xf32>, memref<4xf32>) -> (%2, %3 : memref<4xf32>, memref<4xf32>)
          {element_types = [f32, f32], extents = [array<i64: 4>, array<i64: 4>], gather_dims = array<i64: -1, -1>,
           gather_extents = [array<i64>, array<i64>], pairs = array<i64>, scatter_dims = array<i64: -1, -1>,
           scatter_extents = [array<i64>, array<i64>]}
      exec.launch @relu(%2, %u) name "relu" : memref<4xf32>, memref<4xf32>
      exec.launch @relu(%3, %v) name "relu" : memref<4xf32>, memref<4xf32>
      return
    }
    func.func private @relu(memref<4xf32>, memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
    After, in part:
    ```mlir
    func.func @f(%x: memref<4xf32> ..., %y: memref<4xf32> ..., %u: memref<4xf32> ..., %v: memref<4xf32> ...) ...
      %to = exec.alloc : memref<8xf32>
      %from = exec.alloc : memref<8xf32>
      %0 = memref.reinterpret_cast %from to offset: [0], sizes: [4], strides: [1] : ...
      exec.launch @relu(%x, %0) ...
      %1 = memref.reinterpret_cast %from to offset: [4], sizes: [4], strides: [1] : ...
      exec.launch @relu(%y, %1) ...
      exec.collective all_reduce sum over #tp(%from : memref<8xf32>) -> (%to : memref<8xf32>) ...
      %2 = memref.reinterpret_cast %to to offset: [0], sizes: [4], strides: [1] : ...
      exec.launch @relu(%2, %u) ...
      %3 = memref.reinterpret_cast %to to offset: [4], sizes: [4], strides: [1] : ...
      exec.launch @relu(%3, %v) ...
    ```
  }];
  let options = [
    Option<"form", "form", "::shardc::memory::BucketForm", "::shardc::memory::BucketForm::Auto", "How buckets are handed to the communicator",
           [{::llvm::cl::values(
             clEnumValN(::shardc::memory::BucketForm::Auto, "auto", "whichever costs less"),
             clEnumValN(::shardc::memory::BucketForm::Grouped, "grouped", "as a group of tensors"),
             clEnumValN(::shardc::memory::BucketForm::Packed, "packed", "as one buffer, wherever that is possible"))}]>];
  let statistics = [Statistic<"packed", "packed", "Buckets that became one buffer">,
                    Statistic<"grouped", "grouped", "Buckets that stayed a group of tensors">,
                    Statistic<"copiedBytes", "copied-bytes", "Bytes copied into and out of buckets">,
                    Statistic<"inPlaceBytes", "in-place-bytes", "Bytes computed or used in buckets in place">];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::bufferization::BufferizationDialect"];
}

def UpdateInPlace : Pass<"exec-update-in-place", "::mlir::ModuleOp"> {
  let summary = "Puts the new values of parameters into the memory of the old ones";
  let description = [{
    After `exec-pack-buckets`, before `exec-merge-kernels`. An output with `exec.updates` becomes another name for the memory of
    the parameter whose new value it is, and the entry says so (`exec.in_place`):

    - a kernel that computes the new value from the old one element by element writes over what it reads (`exec.in_place` of the
      kernel);
    - every other reader of the old value, collectives in flight included, comes before the first write: ops that write, and
      what needs their results, are moved behind the last reader. Collectives keep their order;
    - where no order does (two parameters that exchange their values, a new value that is a permutation of the old one), the
      new value is computed in the arena and copied at the end, which the statistics count;
    - kernels that look at positions, which may be out of range, come before the first write where they can;
    - `exec.commit` stands before the first write.

    `exec-verify-buffers` proves for the result that nobody reads an old value that may be overwritten.

    Before:
    ```mlir
    func.func @f(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %g: memref<4xf32> {exec.argument = #exec.argument<input>},
                 %y: memref<4xf32> {exec.argument = #exec.argument<output>},
                 %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry} {
      exec.launch @step(%w, %g, %new) name "step" : memref<4xf32>, memref<4xf32>, memref<4xf32>
      exec.launch @total(%w, %y) name "total" : memref<4xf32>, memref<4xf32>
      return
    }
    func.func private @step(%w: memref<4xf32>, %g: memref<4xf32>, %new: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 2>} {
      %0 = bufferization.to_tensor %w restrict : memref<4xf32> to tensor<4xf32>
      %1 = bufferization.to_tensor %g restrict : memref<4xf32> to tensor<4xf32>
      %2 = aten.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      bufferization.materialize_in_destination %2 in restrict writable %new : (tensor<4xf32>, memref<4xf32>) -> ()
      return
    }
    func.func private @total(memref<4xf32>, memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
    After, in part:
    ```mlir
    func.func @f(...) attributes {exec.entry, exec.in_place} {
      exec.launch @total(%arg0, %arg2) name "total" : ...
      exec.commit
      exec.launch @step_0(%arg1, %arg3) name "step" : ...
      return
    }
    func.func private @step_0(%arg0: memref<4xf32>, %arg1: memref<4xf32>) attributes {exec.in_place = array<i64: 1>, exec.kernel, exec.writes = array<i64: 1>} {
      %0 = bufferization.to_tensor %arg1 restrict : ...
    ```
  }];
  let statistics = [Statistic<"inPlaceLaunches", "in-place-launches", "Launches that write over what they read">,
                    Statistic<"movedOps", "moved-ops", "Ops that have another place than before">,
                    Statistic<"copiedUpdates", "copied-updates", "New values that are copied from the arena">,
                    Statistic<"copiedBytes", "copied-bytes", "Bytes of these">];
  let dependentDialects = ["::shardc::exec::ExecDialect", "::mlir::bufferization::BufferizationDialect"];
}

def PlanArena : Pass<"exec-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Places all buffers of an entry in one arena";
  let description = [{
    A buffer lives from its first to its last use; what a collective in flight reads or writes lives until the wait. Two
    buffers that live at the same time do not overlap, and each begins at a multiple of the target's `buffer_alignment`
    (`exec-set-target`). Static sizes give constant offsets; with symbolic sizes a plan
    function evaluates the offsets for given symbols: each buffer lies above those that live at the same time and
    lie below it for representative sizes.

    Before:
    ```mlir
    func.func @f(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.entry} {
      %0 = exec.alloc : memref<8x64xf32>
      %1 = exec.alloc : memref<8x64xf32>
      %2 = exec.alloc : memref<8x64xf32>
      exec.launch @relu(%x, %0) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%0, %1) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%1, %2) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%2, %y) : memref<8x64xf32>, memref<8x64xf32>
      return
    }
    func.func private @relu(memref<8x64xf32>, memref<8x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
    After:
    ```mlir
    func.func @f(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.arena_bytes = 4096 : i64, exec.entry} {
      %0 = exec.alloc at 0 : memref<8x64xf32>
      %1 = exec.alloc at 2048 : memref<8x64xf32>
      %2 = exec.alloc at 0 : memref<8x64xf32>
      exec.launch @relu(%x, %0) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%0, %1) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%1, %2) : memref<8x64xf32>, memref<8x64xf32>
      exec.launch @relu(%2, %y) : memref<8x64xf32>, memref<8x64xf32>
      return
    }
    func.func private @relu(memref<8x64xf32>, memref<8x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::shardc::exec::ExecDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes", "Bytes of all arenas">,
                    Statistic<"peakBytes", "peak-bytes", "Largest number of bytes that live at once, below which no arena can be">];
}

def AccountMemory : Pass<"exec-account-memory", "::mlir::ModuleOp"> {
  let summary = "Writes the memory that one rank needs to every entry";
  let description = [{
    After `exec-plan-arena`. `exec.memory` of an entry has, in bytes, this rank's slice of each parameter or state, the inputs and
    outputs that the caller gives (not those that are written in place, `exec-update-in-place`), the arena, the largest buffers that live when most bytes do, with the place
    that fills them, and the bytes of all that live then by module, largest first. Symbols have the values of `sizes`, others those that the module notes (`dist-assume-sizes`); entries
    whose sizes depend on any other have no account. `exec-check-memory` reads it.

    Before:
    ```mlir
    func.func @f(%x: memref<8x64xf32> {exec.argument = #exec.argument<input>}, %w: memref<64x64xf32> {exec.argument = #exec.argument<parameter>},
                 %y: memref<8x64xf32> {exec.argument = #exec.argument<output>}) attributes {exec.arena_bytes = 2048 : i64, exec.entry} {
      %0 = exec.alloc at 0 : memref<8x64xf32> loc(fused<"up">["model.py":8:0])
      exec.gemm %x * %w -> %0 name "linear" : memref<8x64xf32> * memref<64x64xf32> -> memref<8x64xf32>
      exec.launch @relu(%0, %y) name "relu" : memref<8x64xf32>, memref<8x64xf32>
      return
    }
    func.func private @relu(memref<8x64xf32>, memref<8x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
    After, in part:
    ```mlir
    func.func @f(...) attributes {exec.arena_bytes = 2048 : i64, exec.entry, exec.memory = {arena = 2048 : i64, caller = 4096 : i64, modules = [[2048, "up"]], parameters = array<i64: 16384>, peak = [[2048, "up (model.py:8)"]]...
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string",
               "Values of symbols, e.g. sizes=batch=8,sequence=128; the memory is that of the first rank in such a run">];
  let statistics = [Statistic<"accounted", "accounted", "Entries that got exec.memory">,
                    Statistic<"parameterBytes", "parameter-bytes", "Bytes of a rank's parameters and states, added up for these entries">,
                    Statistic<"callerBytes", "caller-bytes", "Bytes of a rank's inputs and outputs, added up for these entries">,
                    Statistic<"symbolic", "symbolic", "Entries that got none because their sizes depend on symbols">];
}

def VerifyBuffers : Pass<"exec-verify-buffers", "::mlir::ModuleOp"> {
  let summary = "Checks that entries read nothing before it is written, and write all that they return";
  let description = [{
    Goes through the host program and keeps, for each buffer of the arena and each output, which elements have been
    written: parts of a concatenation or of a packed bucket are counted element for element, as sets of strided views.
    What a kernel writes is in its `exec.writes`; a collective that is in flight has written its outputs when it is
    waited for. Symbols have typical values here. It reports, all at once:

    - a read of an element that nothing has written;
    - an output of which an element is not written when the entry returns;
    - a write to an input, a parameter or a constant;
    - a kernel or product that gets an element to write through one operand, and through another one, too.

    Of an entry that updates parameters in place (`exec-update-in-place`) it proves that nobody reads an old value that may be
    overwritten. It reports

    - a read of an element of a parameter, by whatever op and through whatever view, after an op has begun to write the new value there;
    - a write of an element that a collective in flight still reads;
    - a write to a parameter in front of `exec.commit`.

    Refused:
    ```mlir
    func.func @f(%y: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
      %0 = exec.alloc : memref<4xf32>
      // expected-error @+1 {{'exec.launch' reads element 0 of a buffer of type memref<4xf32>, which nothing has written}}
      exec.launch @relu(%0, %y) : memref<4xf32>, memref<4xf32>
      return
    }
    func.func private @relu(memref<4xf32>, memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
    ```
  }];
  let statistics = [Statistic<"entries", "entries-checked", "Entries looked at">];
}

def VerifySequence : Pass<"exec-verify-sequence", "::mlir::ModuleOp"> {
  let summary = "Checks that entries of different ranks run the same collectives in the same order";
  let description = [{
    Where shards are uneven, `dist-specialize` makes several functions of one, and each rank runs one of them. This pass
    compares their host programs: every collective must have the same kind, reduction, group, element types, dims and
    sources as its counterpart, and must be started or run at once on all of them. `dist-verify-schedule` says so of
    the scheduled stage; here it is said again after buffers are assigned and buckets are packed. A difference
    would be ranks that wait for each other.

    Refused:
    ```mlir
    #mesh = #dist.mesh<["tp" = 2]>
    #tp = #dist.axes<#mesh, ["tp"]>
    module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f, @f_1], [0, 1]>}} {
      func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
        exec.collective all_reduce sum over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
            {element_types = [f32], extents = [array<i64: 4>], gather_dims = array<i64: -1>, gather_extents = [array<i64>],
             pairs = array<i64>, scatter_dims = array<i64: -1>, scatter_extents = [array<i64>]}
        return
      }
      func.func @f_1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
        // expected-error @+1 {{'f' and 'f_1', which are one function on different ranks, do not agree about collective 0: the reductions differ}}
        exec.collective all_reduce max over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
            {element_types = [f32], extents = [array<i64: 4>], gather_dims = array<i64: -1>, gather_extents = [array<i64>],
             pairs = array<i64>, scatter_dims = array<i64: -1>, scatter_extents = [array<i64>]}
        return
      }
    }
    ```
  }];
  let statistics = [Statistic<"collectives", "collectives-compared", "Collectives of the first variant of each function">];
}

#endif // SHARDC_LOWERING_MEMORY_PASSES_TD
