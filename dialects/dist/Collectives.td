// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives. Dist_CollectiveOp says what they have in common.

#ifndef SHARDC_DIALECTS_DIST_COLLECTIVES_TD
#define SHARDC_DIALECTS_DIST_COLLECTIVES_TD

include "dialects/dist/CollectiveInterface.td"
include "dialects/dist/Ops.td"

def Dist_TensorOrFuture : AnyTypeOf<[AnyRankedTensor, Dist_FutureType], "tensor or future">;

// Each op takes any number of tensors: a bucket is one op. Tensors in one op are independent of each
// other. All results are tensors (synchronous) or all are futures (asynchronous).
//
// Effects. A synchronous collective is a function of the values on the ranks of its group, in an SPMD
// program: removing an unused one, or merging two equal ones, happens on all ranks alike, so it has no
// memory effect. It is not speculatable: moving it into or out of a region would change how often
// some rank calls it. An asynchronous one sends a message, and its place in the order of starts
// is part of the program. It therefore writes the resource `Communication` and is never removed, merged or
// reordered by generic passes.
class Dist_CollectiveOp<string mnemonic, list<string> interfaceMethods, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<Dist_CollectiveOpInterface,
            !listconcat(["getCollectiveKind"], interfaceMethods)>])> {
  let hasVerifier = 1;
  let hasCustomAssemblyFormat = 1;
}

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce", ["getReductionOrNone"]> {
  let summary = "Combines the tensors of a group and gives every rank the result";
  let description = [{
    ```mlir
    %y = dist.all_reduce sum over #tp %x : tensor<8x32xf32>
    %f:2 = dist.all_reduce avg over #dp %a, %b
        : (tensor<8xf32>, tensor<?xf32>) -> (!dist.future<tensor<8xf32>>, !dist.future<tensor<?xf32>>)
    ```
    `avg` divides by the number of ranks (integers round toward zero) and is not defined for booleans.
  }];
  let arguments = (ins Dist_ReductionAttr:$reduction, Variadic<AnyRankedTensor>:$tensors,
      Dist_GroupAttrInterface:$group);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

def Dist_AllGatherOp
    : Dist_CollectiveOp<"all_gather", ["getConcatDim", "getConcatExtents"],
                        [AttrSizedOperandSegments]> {
  let summary = "Concatenates the tensors of a group along a dim and gives every rank the result";
  let description = [{
    ```mlir
    %y = dist.all_gather over #tp %x dim 0 : (tensor<2x16xf32>) -> tensor<8x16xf32>
    %f:2 = dist.all_gather over #tp %a dim 0, %b dim 1 extents [5, 3, 0, 2]
        : (tensor<4x8xf32>, tensor<4x?xf32>)
        -> (!dist.future<tensor<16x8xf32>>, !dist.future<tensor<4x10xf32>>)
    %z = dist.all_gather over #tp %c dim 0 full %n : (tensor<?xf32>) -> tensor<?xf32>
    ```
    The operand at position p has `extents[p]` elements along the dim, or PyTorch's chunk of the full
    extent (L3) where no list is given. The full extent is the sum of the list, or the result's
    static extent, or else the operand `full`. An entry of the list may be an index operand.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Variadic<Index>:$sizes,
      Dist_GroupAttrInterface:$group, DenseI64ArrayAttr:$dims, OptionalAttr<ArrayAttr>:$extents);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

def Dist_ReduceScatterOp
    : Dist_CollectiveOp<"reduce_scatter",
                        ["getReductionOrNone", "getSplitDim", "getSplitExtents"],
                        [AttrSizedOperandSegments]> {
  let summary = "Combines the tensors of a group and gives every rank its piece of the result";
  let description = [{
    ```mlir
    %y = dist.reduce_scatter sum over #tp %x dim 0 : (tensor<8x16xf32>) -> tensor<2x16xf32>
    %z = dist.reduce_scatter sum over #tp %x dim 0 extents [5, 3, 0, 2]
        : (tensor<10x16xf32>) -> tensor<?x16xf32>
    ```
    The result at position p has `extents[p]` elements along the dim, or PyTorch's chunk of the
    operand's extent (L3) where no list is given.
  }];
  let arguments = (ins Dist_ReductionAttr:$reduction, Variadic<AnyRankedTensor>:$tensors,
      Variadic<Index>:$sizes, Dist_GroupAttrInterface:$group, DenseI64ArrayAttr:$dims,
      OptionalAttr<ArrayAttr>:$extents);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

def Dist_AllToAllOp
    : Dist_CollectiveOp<"all_to_all", ["getConcatDim", "getConcatExtents", "getSplitDim",
                                       "getSplitExtents"],
                        [AttrSizedOperandSegments]> {
  let summary = "Cuts each tensor, sends piece p to position p, and concatenates the pieces that arrive";
  let description = [{
    ```mlir
    %y = dist.all_to_all over #tp %x split 0 concat 1 : (tensor<8x4xf32>) -> tensor<2x16xf32>
    %z = dist.all_to_all over #ep %t split 0 extents [%a, 3] concat 0 extents [2, %b]
        : (tensor<?x64xbf16>) -> tensor<?x64xbf16>
    ```
    `split extents` are the sizes of the pieces that this rank sends, by destination; `concat
    extents` are those of the pieces that arrive, by source. Where both dims are the same, the pieces
    that are sent may leave the end of a buffer unused. Without a list, the pieces that are sent are PyTorch's chunks
    of the operand's extent along the split dim, and those that arrive are PyTorch's chunks of the full
    extent along the concat dim, which `full` gives where the result's type does not. Where both
    dims are the same and no list is given, all pieces have one size and the shape does not change.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Variadic<Index>:$sizes,
      Dist_GroupAttrInterface:$group, DenseI64ArrayAttr:$split_dims, DenseI64ArrayAttr:$concat_dims,
      OptionalAttr<ArrayAttr>:$split_extents, OptionalAttr<ArrayAttr>:$concat_extents);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

def Dist_BroadcastOp : Dist_CollectiveOp<"broadcast", []> {
  let summary = "Gives every rank the tensors of one position of its group";
  let description = [{
    ```mlir
    %y = dist.broadcast over #tp from 0 %x : tensor<8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Dist_GroupAttrInterface:$group,
      I64Attr:$root);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

def Dist_PermuteOp : Dist_CollectiveOp<"permute", ["getConcatDim", "getConcatExtents"],
                        [AttrSizedOperandSegments]> {
  let summary = "Sends tensors from position to position";
  let description = [{
    Each pair has a source and a target position. A position is the source of at most one pair, and the target of at most
    one. A position that is no target gets zeros.

    ```mlir
    %y = dist.permute over #tp pairs [[0, 1], [1, 2], [2, 0]] %x : tensor<8xf32>
    %z = dist.permute over #tp pairs [[0, 1]] %x dim 0 extents [3, %n, 0, 1]
        : (tensor<?x4xf32>) -> tensor<?x4xf32>
    ```
    The extent of one dim may differ from position to position (halos): the operand at
    position p has `extents[p]` elements along it, and the result has as many as its source, or `extents[p]`
    zeros where there is no source.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Variadic<Index>:$sizes,
      Dist_GroupAttrInterface:$group, DenseI64ArrayAttr:$pairs, DenseI64ArrayAttr:$dims,
      OptionalAttr<ArrayAttr>:$extents);
  let results = (outs Variadic<Dist_TensorOrFuture>:$results);
}

#endif // SHARDC_DIALECTS_DIST_COLLECTIVES_TD
