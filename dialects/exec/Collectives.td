// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host program: collectives on buffers.

#ifndef SHARDC_DIALECTS_EXEC_COLLECTIVES_TD
#define SHARDC_DIALECTS_EXEC_COLLECTIVES_TD

include "dialects/dist/Groups.td"
include "dialects/exec/CollectiveInterface.td"
include "dialects/exec/HostOps.td"
include "dialects/exec/Types.td"

// The place of a collective in the order of collectives is part of the program: each writes the resource
// `Communication`, so that generic passes neither remove nor reorder it.
def Exec_CommunicationResource : Resource<"::shardc::dist::CommunicationResource">;

class Exec_CollectiveOpBase<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat(traits, [AttrSizedOperandSegments,
                                              DeclareOpInterfaceMethods<Exec_CollectiveCallInterface>,
                                              MemoryEffects<[MemWrite<Exec_CommunicationResource>]>])> {
  let arguments = (ins
    Exec_CollectiveKindAttr:$kind, OptionalAttr<Dist_ReductionAttr>:$reduction, Dist_GroupAttrInterface:$group,
    Arg<Variadic<AnyMemRef>, "", [MemRead]>:$inputs, Arg<Variadic<AnyMemRef>, "", [MemWrite]>:$outputs,
    Variadic<Index>:$sizes,
    TypeArrayAttr:$element_types, DenseI64ArrayAttr:$gather_dims, DenseI64ArrayAttr:$scatter_dims,
    TypedArrayAttrBase<DenseI64ArrayAttr, "full extents of each tensor">:$extents,
    TypedArrayAttrBase<DenseI64ArrayAttr, "extents by position along the gather dim">:$gather_extents,
    TypedArrayAttrBase<DenseI64ArrayAttr, "extents by position along the scatter dim">:$scatter_extents,
    DefaultValuedAttr<I64Attr, "0">:$root, DenseI64ArrayAttr:$pairs);
  let assemblyFormat = [{
    custom<CollectiveKind>($kind, $reduction) `over` qualified($group) `(` ($inputs^ `:` type($inputs))? `)` `->`
    `(` ($outputs^ `:` type($outputs))? `)` (`sizes` `(` $sizes^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_CollectiveOp : Exec_CollectiveOpBase<"collective"> {
  let summary = "Runs a collective to its end";
  let description = [{
    Any number of tensors take part; each is read from a dense input and delivered to a dense output. Each tensor has its
    *full* extents, with the gather and the scatter dim whole, and may have a list of extents by position along these
    dims; an empty list stands for PyTorch's chunks (L3). Where an `all_to_all` gathers and scatters one dim, the extent of that
    dim is the input's, and the lists are this rank's own: what it gives to each position and what it gets of each (equal
    pieces where there are none). An entry that is not known is one of `sizes`, in order: extents,
    gather extents and scatter extents of the first tensor, then of the second, and so on. `element_types` are those of
    the tensors, since memory has i8 for booleans. This is `shardrt_collective` of the runtime, which says what the shapes of
    inputs and outputs are for each kind.

    ```mlir
    exec.collective all_reduce sum over #tp (%x : memref<8x32xf32>) -> (%y : memref<8x32xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>,
         extents = [array<i64: 8, 32>], gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    ```

    Input and output do not overlap, but may be one for `all_reduce` and `broadcast`.
  }];
}

def Exec_StartOp : Exec_CollectiveOpBase<"start"> {
  let summary = "Starts a collective and returns at once";
  let description = [{
    The op is like `exec.collective`, but inputs are read and outputs are written until the `exec.wait` of the token, or until
    the end of the program where nothing waits for it.

    ```mlir
    %t = exec.start all_gather over #tp (%x : memref<8x32xf32>) -> (%y : memref<16x32xf32>)
        {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>,
         extents = [array<i64: 16, 32>], gather_extents = [array<i64: 8, 8>], scatter_extents = [array<i64>],
         pairs = array<i64>}
    exec.launch @independent(%a, %b) : memref<64xf32>, memref<64xf32>
    exec.wait %t
    ```
  }];
  let results = (outs Exec_TokenType:$token);
}

def Exec_WaitOp : Exec_Op<"wait", [MemoryEffects<[MemWrite<Exec_CommunicationResource>]>]> {
  let summary = "Blocks until a collective is complete";
  let description = [{
    Afterwards the outputs hold what the collective delivers, and its inputs may be overwritten. Each token is waited for at
    most once.

    ```mlir
    exec.wait %t
    ```
  }];
  let arguments = (ins Exec_TokenType:$token);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_EXEC_COLLECTIVES_TD
