// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_EXEC_EXECOPS_TD
#define SHARDC_DIALECTS_EXEC_EXECOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "dialects/dist/Groups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::shardc::exec";
  let summary = "The program of one rank, as a sequence of calls of kernels and of the runtime";
  let description = [{
    What a local function becomes once its values have memory: buffers of the arena, launches of
    outlined kernels, matrix products, collectives on buffers, and the parallel loops inside kernels.
    Each op corresponds to one service of `runtime/abi/shardrt_program.h`, whatever the target.

    Two kinds of functions exist at this stage:

    - entries (`exec.entry`): straight-line code over memrefs. Their arguments are the rank's inputs,
      parameters and outputs, told apart by `exec.argument`;
    - kernels (`exec.kernel`): leaf functions over memrefs. No two arguments share memory, unless neither is
      written.
  }];
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_AllocOp : Exec_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A buffer of the arena";
  let description = [{
    Dense, row-major, undefined contents. It lives from its first to its last use (through views); the
    arena planner gives it an `offset` in bytes, or where sizes are symbolic a `slot`: the index of the
    frame's offset that the plan function computes.

    ```mlir
    %0 = exec.alloc : memref<8x64xf32>
    %1 = exec.alloc(%n) at 4096 : memref<?x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Index>:$sizes, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$slot);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = [{
    (`(` $sizes^ `)`)? (`at` $offset^)? (`slot` $slot^)? attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Exec_LaunchOp : Exec_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    `name` is what traces and messages call it: the ops that it came from. The kernel's types are those of the arguments
    without their offsets.

    ```mlir
    exec.launch @layer_norm(%x, %w, %b, %y) : memref<8x64xf32>, memref<64xf32>, memref<64xf32>, memref<8x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$args,
                       OptionalAttr<StrAttr>:$name);
  let assemblyFormat = "$kernel `(` $args `)` (`name` $name^)? attr-dict (`:` type($args)^)?";
}

def Exec_GemmOp : Exec_Op<"gemm"> {
  let summary = "C = alpha A B + beta C + bias, for each batch";
  let description = [{
    Without attributes: C = A B + bias.
    `a` is `[batch x] M x K`, `b` is `[batch x] K x N`, `c` is `[batch x] M x N`, `bias` is `N`. Strides
    say the rest: an operand whose first matrix stride is 1 is a transposed one, a batch stride of 0
    repeats a matrix. One of the two matrix strides of `a` and `b` is 1, the last stride of `c` is 1.

    ```mlir
    exec.gemm %x * %w + %bias -> %y : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> + memref<32xf32> -> memref<8x32xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$a, AnyMemRef:$b, Optional<AnyMemRef>:$bias, AnyMemRef:$c,
                       DefaultValuedAttr<F64Attr, "1.0">:$alpha, DefaultValuedAttr<F64Attr, "0.0">:$beta,
                       OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $a `*` $b (`+` $bias^)? `->` $c (`name` $name^)? attr-dict
    `:` type($a) `*` type($b) (`+` type($bias)^)? `->` type($c)
  }];
  let hasVerifier = 1;
}

def Exec_ParallelOp : Exec_Op<"parallel", [SingleBlock, NoTerminator, RecursiveMemoryEffects,
                                            RecursivelySpeculatable]> {
  let summary = "A loop whose iterations may run on several threads";
  let description = [{
    The body runs for i = 0 .. count-1, in any order; no iteration depends on another. No thread gets
    fewer than `grain` consecutive iterations, so that small loops stay on one thread.

    ```mlir
    exec.parallel %i to %n grain 4 {
      ...
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
  let summary = "Calls a function on ranges that cover 0 .. count, on several threads";
  let description = [{
    What `exec.parallel` becomes once its body is a function: its last two arguments are the range.

    ```mlir
    exec.parallel_call @body(%x, %y) to %n grain 4 : memref<f32>, memref<f32>
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
    In kernels: the run fails with this message and the launch's location, unless another failure was recorded before.
    That is reported when the run ends. What follows, in the kernel and behind it, still runs: it must be safe.

    ```mlir
    exec.fail_if %bad, "index out of range in embedding"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

def Exec_CheckRangeOp : Exec_Op<"check_range"> {
  let summary = "Fails the run unless all integers are in a range";
  let description = [{
    In kernels, before whatever reads memory at these positions: if an element of `indices` is not in [low, high),
    the kernel records a failure with `message` and does nothing else.

    ```mlir
    exec.check_range %ids in [%c0, %n), "index out of range" : tensor<8x11xi64>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$indices, Index:$low, Index:$high,
                       StrAttr:$message);
  let assemblyFormat = [{
    $indices `in` `[` $low `,` $high `)` `,` $message attr-dict `:` type($indices)
  }];
}

def Exec_FrameOp : Exec_Op<"frame", [Pure]> {
  let summary = "The frame of the run, in kernels that have their binary interface";
  let results = (outs AnyType:$frame);
  let assemblyFormat = "attr-dict `:` type($frame)";
  let hasVerifier = 1;
}

def Exec_ScratchOp : Exec_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Memory of the calling thread, for what a kernel needs and a stack cannot hold";
  let description = [{
    Dense, row-major, undefined contents. The runtime keeps it from run to run; no two buffers of one kernel and of its loop
    bodies share a `slot`. Where there is no memory the run fails, and the function returns here.

    ```mlir
    %t = exec.scratch 0 of %frame(%n) : !llvm.ptr -> memref<?x50257xf32>
    ```
  }];
  let arguments = (ins AnyType:$frame, ConfinedAttr<I32Attr, [IntNonNegative]>:$slot,
                       Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = [{
    $slot `of` $frame (`(` $sizes^ `)`)? attr-dict `:` type($frame) `->` type($buffer)
  }];
  let hasVerifier = 1;
}

def Exec_SetOffsetOp : Exec_Op<"set_offset"> {
  let summary = "In plan functions: the arena offset, in bytes, of the buffer with this slot";
  let arguments = (ins Index:$offset, I64Attr:$slot);
  let assemblyFormat = "$offset `slot` $slot attr-dict";
}

def Exec_SetArenaBytesOp : Exec_Op<"set_arena_bytes"> {
  let summary = "In plan functions: the size of the arena";
  let arguments = (ins Index:$bytes);
  let assemblyFormat = "$bytes attr-dict";
}

def Exec_ArgumentOp : Exec_Op<"argument", [Pure]> {
  let summary = "Memory that the caller of an entry gives: number `index` of its kind";
  let description = [{
    ```mlir
    %x = exec.argument "input" 0 : memref<8x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$kind, I64Attr:$index);
  let results = (outs AnyMemRef:$memory);
  let assemblyFormat = "$kind $index attr-dict `:` type($memory)";
}

class Exec_CollectiveOpBase<string mnemonic> : Exec_Op<mnemonic, [AttrSizedOperandSegments]> {
  let arguments = (ins
    StrAttr:$kind, OptionalAttr<Dist_ReductionAttr>:$reduction, Dist_GroupAttrInterface:$group,
    Variadic<AnyMemRef>:$inputs, Variadic<AnyMemRef>:$outputs, Variadic<Index>:$sizes,
    TypeArrayAttr:$element_types, DenseI64ArrayAttr:$gather_dims, DenseI64ArrayAttr:$scatter_dims,
    TypedArrayAttrBase<DenseI64ArrayAttr, "full extents of each tensor">:$extents,
    TypedArrayAttrBase<DenseI64ArrayAttr, "extents by position along the gather dim">:$gather_extents,
    TypedArrayAttrBase<DenseI64ArrayAttr, "extents by position along the scatter dim">:$scatter_extents,
    DefaultValuedAttr<I64Attr, "0">:$root, DenseI64ArrayAttr:$pairs);
}

def Exec_CollectiveOp : Exec_CollectiveOpBase<"collective"> {
  let summary = "Runs a collective to its end";
  let description = [{
    On dense buffers. Each tensor has its *full* extents (with the gather and the scatter dim whole), and may have a list
    of extents by position along these dims; no list is PyTorch's chunks. A dynamic entry is one of `sizes`, in order:
    extents, gather extents and scatter extents of the first tensor, then of the second, and so on. This is
    `shardrt_collective` of the runtime. `element_types` are those of the tensors (memory has i8 for bool).
  }];
  let assemblyFormat = [{
    $kind custom<CombineKind>($reduction) `over` qualified($group) `(` ($inputs^ `:` type($inputs))? `)` `->`
    `(` ($outputs^ `:` type($outputs))? `)`
    (`sizes` `(` $sizes^ `)`)? attr-dict
  }];
}

def Exec_StartOp : Exec_CollectiveOpBase<"start"> {
  let summary = "Starts a collective";
  let description = [{
    As `exec.collective`, but returns at once. Inputs are read and outputs written until the `exec.wait` of its token, or the
    end of the program where there is none.
  }];
  let results = (outs I64:$token);
  let assemblyFormat = [{
    $kind custom<CombineKind>($reduction) `over` qualified($group) `(` ($inputs^ `:` type($inputs))? `)` `->`
    `(` ($outputs^ `:` type($outputs))? `)`
    (`sizes` `(` $sizes^ `)`)? attr-dict
  }];
}

def Exec_WaitOp : Exec_Op<"wait"> {
  let summary = "Blocks until a collective is complete";
  let arguments = (ins I64:$token);
  let assemblyFormat = "$token attr-dict";
}

#endif // SHARDC_DIALECTS_EXEC_EXECOPS_TD
