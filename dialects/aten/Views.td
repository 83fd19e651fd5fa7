// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that only rearrange elements.
#ifndef SHARDC_DIALECTS_ATEN_VIEWS_TD
#define SHARDC_DIALECTS_ATEN_VIEWS_TD

include "dialects/aten/AtenBase.td"

class Aten_ViewOpBase<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
}

/// A shape given as static sizes and index operands.
class Aten_SizedViewOp<string mnemonic> : Aten_ViewOpBase<mnemonic> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$static_size, Variadic<Index>:$size);
  let assemblyFormat = [{
    $self custom<DynamicIndexList>($size, $static_size) attr-dict
    `:` `(` type($self) `)` `->` type($result)
  }];
  let moreDeclarations = [{
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedSize() {
      return ::mlir::getMixedValues(getStaticSize(), getSize(), getContext());
    }
  }];
}

def Aten_ViewOp : Aten_SizedViewOp<"view"> {
  let summary = "The same elements in row-major order, in another shape";
  let description = [{
    Also ATen's reshape, _unsafe_view, flatten and unflatten. No size is -1.

    ```mlir
    %y = aten.view %x [8, %n, 12, 32] : (tensor<8x?x384xf32>) -> tensor<8x?x12x32xf32>
    ```
  }];
}

def Aten_ExpandOp : Aten_SizedViewOp<"expand"> {
  let summary = "Repeats dims of size 1, adds dims in front";
  let description = [{
    `size` is the shape of the result; no size is -1.
  }];
}

def Aten_PermuteOp : Aten_ViewOpBase<"permute", [LocalizableOpInterface]> {
  let summary = "Dim i of the result is dim dims[i] of self";
  let arguments = (ins Aten_Tensor:$self, Aten_Dims:$dims);
  let assemblyFormat = "$self $dims attr-dict `:` functional-type(operands, results)";
}

def Aten_TransposeOp : Aten_ViewOpBase<"transpose", [LocalizableOpInterface]> {
  let summary = "Swaps two dims";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim0, Aten_Dim:$dim1);
  let assemblyFormat = [{
    $self ` ` `[` $dim0 `,` $dim1 `]` attr-dict `:` functional-type(operands, results)
  }];
}

#endif // SHARDC_DIALECTS_ATEN_VIEWS_TD
