// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host program: memory, kernels and products. Its collectives are in Collectives.td.

#ifndef SHARDC_DIALECTS_EXEC_HOSTOPS_TD
#define SHARDC_DIALECTS_EXEC_HOSTOPS_TD

include "dialects/exec/Attributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_KernelArgument : AnyTypeOf<[AnyMemRef, Index, AnySignlessInteger, AnyFloat]>;

def Exec_AllocOp : Exec_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Allocates a buffer of the arena";
  let description = [{
    The buffer is dense and row-major, and its contents are undefined at first. It lives from its first to its last use,
    views of it included. `exec-plan-arena` gives it a place: an `offset` in bytes, or, where sizes depend on symbols, a
    `slot`, which is the number of the offset that the plan function computes for it.

    ```mlir
    %0 = exec.alloc : memref<8x64xf32>
    %1 = exec.alloc at 4096 : memref<8x64xf32>
    %2 = exec.alloc(%n) slot 3 : memref<?x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Index>:$sizes, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$slot);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = [{
    (`(` $sizes^ `)`)? (`at` $offset^)? (`slot` $slot^)? attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def Exec_ArgumentOp : Exec_Op<"argument", [Pure]> {
  let summary = "Returns memory that the caller of an entry gives";
  let description = [{
    The result is input, parameter or output number `index`. Arguments of an entry become this op when the entry loses its
    signature, on the way to code.

    ```mlir
    %x = exec.argument input 0 : memref<8x64xf32>
    ```
  }];
  let arguments = (ins Exec_ArgumentKindAttr:$kind, ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs AnyMemRef:$memory);
  let assemblyFormat = "custom<Kind>($kind) $index attr-dict `:` type($memory)";
}

def Exec_LaunchOp : Exec_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    The kernel's argument types are those of the operands without their offsets, which are part of the pointer. `name` is
    the name of the launch in traces and messages: the ops that it came from.

    ```mlir
    exec.launch @layer_norm(%x, %w, %b, %y) name "layer_norm"
        : memref<8x64xf32>, memref<64xf32>, memref<64xf32>, memref<8x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_KernelArgument>:$args, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = "$kernel `(` $args `)` (`name` $name^)? attr-dict (`:` type($args)^)?";
}

def Exec_GemmOp : Exec_Op<"gemm", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Multiplies matrices: C = alpha A B + beta C + bias, for each batch";
  let description = [{
    `a` is `[batch x] M x K`, `b` is `[batch x] K x N`, `c` is `[batch x] M x N` and `bias` is `N`. Without attributes the op
    computes C = A B + bias; C is read only where `beta` is not 0. Transposition and repetition are given by strides: an operand
    whose first matrix stride is 1 is transposed, and a batch stride of 0 repeats a matrix. One of the two matrix strides of `a` and of
    `b` is 1, and so is the last stride of `c`.

    ```mlir
    exec.gemm %x * %w + %bias -> %y name "linear"
        : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> + memref<32xf32> -> memref<8x32xf32>
    exec.gemm %x * %w -> %y {alpha = 5.0e-01 : f64, beta = 1.0 : f64}
        : memref<8x64xf32> * memref<64x32xf32> -> memref<8x32xf32>
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

def Exec_CommitOp : Exec_Op<"commit", [MemoryEffects<[MemWrite]>]> {
  let summary = "Says that parameters change from here on";
  let description = [{
    Whatever has failed so far ends the run here, and parameters are as they were. A run that fails later leaves neither the old
    nor the new values behind: the runtime refuses to go on with them (`commit` of `shardrt_services`). An entry that
    updates its parameters in place (`exec.in_place`) has one such op in front of the first write.

    ```mlir
    exec.commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Exec_ReadSizesOp : Exec_Op<"read_sizes"> {
  let summary = "Reads numbers that kernels have written, for the sizes of a collective";
  let description = [{
    Result i is element i of the memory. The op waits until what was launched before it is done. A number below 0 or above `at_most`
    fails the run (`read_sizes` of `shardrt_services`).

    ```mlir
    %n:3 = exec.read_sizes %counts at_most 100 : memref<3xi64>
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[I64], [1]>, "", [MemRead]>:$memory, ConfinedAttr<I64Attr, [IntNonNegative]>:$at_most);
  let results = (outs Variadic<Index>:$sizes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Exec_AttentionOp : Exec_Op<"attention", [AttrSizedOperandSegments]> {
  let summary = "Computes attention: softmax(Q K^T * scale + mask) V, for each head";
  let description = [{
    `query` is `batch x H x L x E`, `key` is `batch x G x S x E`, `value` is `batch x G x S x F`, `mask` is
    `batch x H x L x S` and `out` is `batch x H x L x F`, with any strides. H is a multiple of G: head h of the query uses
    head h / (H / G) of key and value. A mask of i8 is one of booleans (a key whose entry is 0 takes no part), one of
    numbers is added to the scores. With `causal`, query i sees keys 0 to `first` + i, where `first` is the position of
    the first query among the keys, 0 without it and never negative. A query behind the last key sees all, and one that sees no key gets zeros.
    `logsumexp`, `batch x H x L`, gets the logarithm of what the softmax of each query divides by, and 0 for a query that
    sees no key. With `partial` the keys are some of all: `out` has the type of sums, and that logsumexp is -inf.

    Scores and sums are f32 (f64 for f64), whatever the element type, and the result is rounded once. Where matrix units
    multiply 16-bit numbers, the weights (the exponentials, relative to the largest score so far) are rounded to the element
    type before they are multiplied with `value`; what the softmax divides by is the sum of those that are not rounded. How
    it is computed, and whether the scores of a row ever exist as a whole, is the target's decision.

    ```mlir
    exec.attention %q, %k, %v mask %m -> %o scale 1.250000e-01 name "attention"
        : memref<2x8x16x64xf32>, memref<2x2x32x64xf32>, memref<2x2x32x64xf32> mask memref<2x8x16x32xi8>
        -> memref<2x8x16x64xf32>
    exec.attention %q, %k, %v -> %o causal scale 1.250000e-01
        : memref<2x8x16x64xf32>, memref<2x2x16x64xf32>, memref<2x2x16x64xf32> -> memref<2x8x16x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$query, Arg<AnyMemRef, "", [MemRead]>:$key,
                       Arg<AnyMemRef, "", [MemRead]>:$value, Arg<Optional<AnyMemRef>, "", [MemRead]>:$mask,
                       Optional<Index>:$first, Arg<AnyMemRef, "", [MemWrite]>:$out, Arg<Optional<AnyMemRef>, "", [MemWrite]>:$logsumexp,
                       UnitAttr:$causal, UnitAttr:$partial, F64Attr:$scale, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? `->` $out (`logsumexp` $logsumexp^)? (`causal` $causal^)?
    (`first` $first^)? (`partial` $partial^)? `scale` $scale (`name` $name^)? attr-dict `:` type($query) `,` type($key) `,` type($value) (`mask` type($mask)^)? `->` type($out)
    (`logsumexp` type($logsumexp)^)?
  }];
  let hasVerifier = 1;
}

def Exec_AttentionBackwardOp : Exec_Op<"attention_backward", [AttrSizedOperandSegments]> {
  let summary = "Computes the cotangents of query, key and value of an attention from that of its result";
  let description = [{
    `query`, `key`, `value`, `mask`, `out` and `logsumexp` are those of the `exec.attention`, and `grad_out` is the cotangent of
    `out`. With p = exp(scores - logsumexp) and g = p * (grad_out V^T - rowsum(grad_out * out)), which are computed in the type
    of the logsumexp: `grad_query` = g K * scale, `grad_key` = g^T Q * scale and `grad_value` = p^T grad_out, of which the last
    two are sums over the heads of queries that share a head of keys. Sums have one order, so that every run gives the same bits.
    Where matrix units multiply 16-bit numbers, p and g are rounded to the element type before these products. With `partial`
    the keys are some of those that the forward had, and the results have the type of the logsumexp. Keys that no query sees get zeros.

    ```mlir
    exec.attention_backward %g, %q, %k, %v, %o, %l -> %dq, %dk, %dv causal scale 1.250000e-01 name "attention_backward"
        : memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x2x16x64xf32>, memref<2x2x16x64xf32>, memref<2x8x16x64xf32>,
          memref<2x8x16xf32> -> memref<2x8x16x64xf32>, memref<2x2x16x64xf32>, memref<2x2x16x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$grad_out, Arg<AnyMemRef, "", [MemRead]>:$query,
                       Arg<AnyMemRef, "", [MemRead]>:$key, Arg<AnyMemRef, "", [MemRead]>:$value,
                       Arg<AnyMemRef, "", [MemRead]>:$out, Arg<AnyMemRef, "", [MemRead]>:$logsumexp,
                       Arg<Optional<AnyMemRef>, "", [MemRead]>:$mask, Optional<Index>:$first, Arg<AnyMemRef, "", [MemWrite]>:$grad_query,
                       Arg<AnyMemRef, "", [MemWrite]>:$grad_key, Arg<AnyMemRef, "", [MemWrite]>:$grad_value,
                       UnitAttr:$causal, UnitAttr:$partial, F64Attr:$scale, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $grad_out `,` $query `,` $key `,` $value `,` $out `,` $logsumexp (`mask` $mask^)? `->` $grad_query `,` $grad_key `,` $grad_value
    (`causal` $causal^)? (`first` $first^)? (`partial` $partial^)? `scale` $scale (`name` $name^)? attr-dict `:`
    type($grad_out) `,` type($query) `,` type($key) `,` type($value) `,` type($out) `,` type($logsumexp) (`mask` type($mask)^)? `->` type($grad_query) `,` type($grad_key) `,`
    type($grad_value)
  }];
  let hasVerifier = 1;
}

def Exec_ScatterOp : Exec_Op<"scatter"> {
  let summary = "Copies a tensor and combines its elements with values at positions that are in memory";
  let description = [{
    `values` and each of `indices` are over one domain, with any strides. Element p of the domain goes to the element of `out`
    whose position in dim d is `p[loops[d]]`, or, where that is -1, what the next one of `indices` says at p. With `wraps`,
    negative positions count from the end. `combine` says what becomes of an element and a value: "add", "multiply", "max" and
    "min" (NaN where one is NaN; "umax" and "umin" of unsigned integers), and "assign", which keeps the value. The result is
    rounded after each value, and values are taken in row-major order of the domain, so that every run gives the same bits.

    Positions out of range are a failure of the run with this message, and nothing is changed there. With `skips`, a position
    that is the size of its dim says that the value goes nowhere, and is no failure.

    ```mlir
    exec.scatter %self, %values at %rows -> %out loops [-1, 1] "index out of range" name "index_put"
        : memref<100x8xf32>, memref<16x8xf32> at memref<16x8xi64, strided<[1, 0]>> -> memref<100x8xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$source, Arg<AnyMemRef, "", [MemRead]>:$values,
                       Arg<Variadic<AnyMemRef>, "", [MemRead]>:$indices, Arg<AnyMemRef, "", [MemWrite]>:$out,
                       DenseI64ArrayAttr:$loops, UnitAttr:$wraps, UnitAttr:$skips,
                       DefaultValuedStrAttr<StrAttr, "add">:$combine, StrAttr:$message, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $source `,` $values `at` $indices `->` $out `loops` $loops (`wraps` $wraps^)? (`skips` $skips^)? $message (`name` $name^)?
    attr-dict `:` type($source) `,` type($values) `at` type($indices) `->` type($out)
  }];
  let hasVerifier = 1;
}

def Exec_SortOp : Exec_Op<"sort"> {
  let summary = "Sorts along a dim, and says where the elements were";
  let description = [{
    `values` gets the first elements along `dim` of what is in order, as many as it has, and `positions` (i64) where each was in
    `source`. Equal elements keep their order, and NaN is larger than all other numbers. With `unsigned`, integers have no sign.

    ```mlir
    exec.sort %x -> %v, %p dim 1 descending name "topk" : memref<4x100xf32> -> memref<4x8xf32>, memref<4x8xi64>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$source, Arg<AnyMemRef, "", [MemWrite]>:$values,
                       Arg<AnyMemRef, "", [MemWrite]>:$positions, I64Attr:$dim, UnitAttr:$descending,
                       UnitAttr:$is_unsigned, OptionalAttr<StrAttr>:$name);
  let assemblyFormat = [{
    $source `->` $values `,` $positions `dim` $dim (`descending` $descending^)? (`unsigned` $is_unsigned^)? (`name` $name^)?
    attr-dict `:` type($source) `->` type($values) `,` type($positions)
  }];
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_EXEC_HOSTOPS_TD
