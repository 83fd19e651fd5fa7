// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of kernels other than arithmetic: loops on several threads, checks, memory of a thread.

#ifndef SHARDC_DIALECTS_EXEC_KERNELOPS_TD
#define SHARDC_DIALECTS_EXEC_KERNELOPS_TD

include "dialects/exec/ExecBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_ParallelOp : Exec_Op<"parallel", [SingleBlock, NoTerminator, RecursiveMemoryEffects,
                                            RecursivelySpeculatable]> {
  let summary = "Loops over iterations that may run on several threads";
  let description = [{
    The body runs for i = 0 to count - 1, in any order; no iteration depends on another. No thread gets fewer than
    `grain` consecutive iterations, so that small loops stay on one thread.

    ```mlir
    exec.parallel %i to %n grain 4 {
      %x = memref.load %a[%i] : memref<?xf32>
      memref.store %x, %b[%i] : memref<?xf32>
    }
    ```
  }];
  let arguments = (ins Index:$count, ConfinedAttr<I64Attr, [IntPositive]>:$grain);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getInductionVariable() { return getBody().front().getArgument(0); }
  }];
}

def Exec_ParallelCallOp : Exec_Op<"parallel_call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a function on ranges that cover 0 to count, on several threads";
  let description = [{
    An `exec.parallel` becomes this op when its body becomes a function. The last two arguments of that function are the begin
    and the end of the range.

    ```mlir
    exec.parallel_call @body(%x, %y) to %n grain 4 : memref<f32>, memref<f32>
    func.func private @body(%x: memref<f32>, %y: memref<f32>, %begin: index, %end: index) { ... }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Variadic<AnyType>:$args, Index:$count,
                       ConfinedAttr<I64Attr, [IntPositive]>:$grain);
  let assemblyFormat = [{
    $body `(` $args `)` `to` $count `grain` $grain attr-dict (`:` type($args)^)?
  }];
}

def Exec_FailIfOp : Exec_Op<"fail_if"> {
  let summary = "Records that the run has failed";
  let description = [{
    The run fails with this message and the launch's location, unless another failure was recorded before; it is reported
    when the run ends. What follows, in the kernel and behind it, still runs: it must be safe.

    ```mlir
    exec.fail_if %bad, "index out of range in embedding"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
  let hasVerifier = 1;
}

def Exec_CheckRangeOp : Exec_Op<"check_range"> {
  let summary = "Fails the run unless all integers are in a range";
  let description = [{
    It stands before whatever reads memory at these positions: if an element of `indices` is not in [low, high), the
    kernel records a failure with `message` and does nothing else.

    ```mlir
    exec.check_range %ids in [%c0, %n), "index out of range" : tensor<8x11xi64>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$indices, Index:$low, Index:$high, StrAttr:$message);
  let assemblyFormat = [{
    $indices `in` `[` $low `,` $high `)` `,` $message attr-dict `:` type($indices)
  }];
  let hasVerifier = 1;
}

def Exec_FrameOp : Exec_Op<"frame", [Pure]> {
  let summary = "Returns the frame of the run, in kernels that have their binary interface";
  let description = [{
    A loop body gets it from its kernel as an argument.

    ```mlir
    %frame = exec.frame : !llvm.ptr
    ```
  }];
  let results = (outs AnyType:$frame);
  let assemblyFormat = "attr-dict `:` type($frame)";
  let hasVerifier = 1;
}

def Exec_ScratchOp : Exec_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Returns memory of the calling thread, for temporaries that are too large for the stack";
  let description = [{
    The memory is dense and row-major, and its contents are undefined at first. The runtime keeps it from run to run; no
    two buffers of one kernel and of its loop bodies share a `slot`. If the memory cannot be allocated, the run fails and the
    function returns here.

    ```mlir
    %t = exec.scratch 0 of %frame(%n) : !llvm.ptr -> memref<?x50257xf32>
    ```
  }];
  let arguments = (ins AnyType:$frame, ConfinedAttr<I32Attr, [IntNonNegative]>:$slot, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = [{
    $slot `of` $frame (`(` $sizes^ `)`)? attr-dict `:` type($frame) `->` type($buffer)
  }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_EXEC_KERNELOPS_TD
