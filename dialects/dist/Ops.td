// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Placement, futures, and ops whose results depend on the rank. Collectives are in Collectives.td.

#ifndef SHARDC_DIALECTS_DIST_OPS_TD
#define SHARDC_DIALECTS_DIST_OPS_TD

include "dialects/dist/Groups.td"
include "dialects/dist/Types.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===------------------------------------------------------------------------------------------===//
// Imported and placed stages
//===------------------------------------------------------------------------------------------===//

def Dist_ConstrainOp : Dist_Op<"constrain", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Asks for a layout of a tensor (imported stage)";
  let description = [{
    The op is the identity. Placement keeps the placements of the layout and decides those that it leaves open (`?`).

    ```mlir
    %y = dist.constrain %x : tensor<8x16xf32> to #dist.layout<#mesh, [S(0), ?]>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Dist_LayoutAttr:$layout);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result) `to` qualified($layout)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_RedistributeOp : Dist_Op<"redistribute", [Pure]> {
  let summary = "Changes the layout of a tensor (placed stage, and half-placed)";
  let description = [{
    The op is the identity on the global value, whatever the two layouts are. It is the only op that may move data before
    collectives exist. `backward` marks the cotangent of another redistribute (G2, G3). In a half-placed function either
    side may be without a layout: `dist-place` gives it one. `by` names the one step that leads from the one layout to the
    other, once `dist-plan-redistributions` has chosen it; the verifier checks that there is such a step
    (dialects/sharding/RedistributeStep.h), and localisation emits it.

    ```mlir
    %r = dist.redistribute %y : tensor<8x32xf32, #Ptp> to tensor<8x32xf32, #R>
    %g = dist.redistribute backward %y : tensor<8x32xf32, #R> to tensor<8x32xf32, #Ptp>
    %s = dist.redistribute %y by all_reduce : tensor<8x32xf32, #Ptp> to tensor<8x32xf32, #R>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, UnitAttr:$backward, OptionalAttr<Dist_StepKindAttr>:$step);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    (`backward` $backward^)? $input (`by` custom<StepName>($step)^)? attr-dict `:` type($input) `to` type($result)
  }];
  let builders = [
    // Without a step: planning comes later.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input, "bool":$backward), [{
      build($_builder, $_state, result, input, backward, StepKindAttr());
    }]>,
  ];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    LayoutAttr getSourceLayout() { return getLayout(getInput().getType()); }
    LayoutAttr getTargetLayout() { return getLayout(getResult().getType()); }
  }];
}

//===------------------------------------------------------------------------------------------===//
// Local and scheduled stages
//===------------------------------------------------------------------------------------------===//

def Dist_WaitOp : Dist_Op<"wait", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Waits for collectives in flight and delivers their tensors";
  let description = [{
    A collective reads its operands until its wait. Their buffers must be neither freed nor overwritten between
    the start and the wait.

    ```mlir
    %a, %b = dist.wait %f, %g : !dist.future<tensor<4xf32>>, !dist.future<tensor<8xf32>>
    ```
  }];
  let arguments = (ins Variadic<Dist_FutureType>:$futures);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "($futures^ `:` type($futures))? attr-dict";
  let hasCanonicalizer = 1;
}

def Dist_AxisIndexOp : Dist_Op<"axis_index", [Pure]> {
  let summary = "Returns this rank's position in its group";
  let description = [{
    ```mlir
    %i = dist.axis_index over #dist.axes<#mesh, ["tp"]>
    ```
  }];
  let arguments = (ins Dist_GroupAttrInterface:$group);
  let results = (outs Index:$result);
  let assemblyFormat = "`over` qualified($group) attr-dict";
  let hasFolder = 1;
}

def Dist_ExtentOp : Dist_Op<"extent", [Pure]> {
  let summary = "Returns an extent on this rank";
  let description = [{
    The result is the value of `extents` at this rank's mesh coordinate, for this run's values of the symbols. Two
    such ops with equal extents have equal results. `dist-specialize` folds those that are static.

    ```mlir
    %rows = dist.extent #dist.extents<10 over #mesh ["dp"]>
    ```
  }];
  let arguments = (ins Dist_ExtentsAttr:$extents);
  let results = (outs Index:$result);
  let assemblyFormat = "qualified($extents) attr-dict";
  let hasFolder = 1;
}

def Dist_ReadSizesOp : Dist_Op<"read_sizes", [Pure]> {
  let summary = "Reads sizes that the program has computed";
  let description = [{
    Result i is element i of the tensor, for the sizes of a collective whose pieces depend on values: how many elements of a
    shard sort into that of each other rank, say. Each is at least 0 and at most `at_most`; another number fails the run. The host waits for
    what computes the tensor, so that one op reads all that is known at once.

    ```mlir
    %n:3 = dist.read_sizes %counts at_most 100 : tensor<3xi64>
    ```
  }];
  let arguments = (ins 1DTensorOf<[I64]>:$tensor, ConfinedAttr<I64Attr, [IntNonNegative]>:$at_most);
  let results = (outs Variadic<Index>:$sizes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Dist_LeaveMeshOp : Dist_Op<"leave_mesh", [Pure]> {
  let summary = "Hands what ranks of a mesh have to a collective that other ranks take part in";
  let description = [{
    On a rank of the mesh the result is the operand. Another rank does not have the operand, for it does not run the ops
    that make it (L5): its result is empty. Localisation puts this op before the exchange of a redistribution between
    meshes (R3), where some rank of the exchange is outside of the mesh that the tensor comes from.

    ```mlir
    %m = dist.leave_mesh on #mesh %x : tensor<16xf32> to tensor<?xf32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, Dist_MeshAttr:$mesh);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let assemblyFormat = "`on` qualified($mesh) $input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Dist_EnterMeshOp : Dist_Op<"enter_mesh", [Pure]> {
  let summary = "Takes what a collective delivered to the ranks of a mesh";
  let description = [{
    On a rank of the mesh the result is the operand. On another rank nobody has the result: the rank runs no op that uses
    it (L5). Localisation puts this op behind the exchange of a redistribution between meshes (R3), where some rank of the
    exchange is outside of the mesh that the tensor goes to. The type of the result is that on the ranks of the mesh.

    ```mlir
    %y = dist.enter_mesh on #mesh %m : tensor<?xf32> to tensor<16xf32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, Dist_MeshAttr:$mesh);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let assemblyFormat = "`on` qualified($mesh) $input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

#endif // SHARDC_DIALECTS_DIST_OPS_TD
