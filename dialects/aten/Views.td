// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that only rearrange elements.
#ifndef SHARDC_DIALECTS_ATEN_VIEWS_TD
#define SHARDC_DIALECTS_ATEN_VIEWS_TD

include "dialects/aten/AtenBase.td"

class Aten_RearrangementOp<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
}

/// Another way to look at the operand. Where its dims come from is written out (InferViews.cpp,
/// InferSliceAndConcat.cpp).
class Aten_TensorViewOp<string mnemonic, string kind, list<Trait> traits = []>
    : Aten_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<TensorViewOpInterface>], traits)> {
  let viewKind = kind;
  let runsAs = "KernelForm::View";
}
class Aten_ResultViewOp<string mnemonic, string kind, list<Trait> traits = []>
    : Aten_TensorViewOp<mnemonic, kind, traits> {
  let results = (outs Aten_Tensor:$result);
}

/// A shape given as static sizes and index operands.
class Aten_SizedViewOp<string mnemonic, string kind> : Aten_ResultViewOp<mnemonic, kind> {
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

def Aten_ViewOp : Aten_SizedViewOp<"view", "Reshape"> {
  let summary = "The same elements in row-major order, in another shape";
  let description = [{
    The op stands for ATen's reshape, _unsafe_view, flatten and unflatten too. No size is -1.

    ```mlir
    %y = aten.view %x [8, %n, 12, 32] : (tensor<8x?x384xf32>) -> tensor<8x?x12x32xf32>
    ```
  }];
  let shardBy = "viewRule(op)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Aten_ExpandOp : Aten_SizedViewOp<"expand", "Expansion"> {
  let summary = "Repeats dims of size 1, adds dims in front";
  let description = [{
    `size` is the shape of the result; no size is -1.
  }];
  let shardBy = "expandRule(op)";
  let runsAs = "KernelForm::LoopView";
  let hasFolder = 1;
}

def Aten_PermuteOp : Aten_ResultViewOp<"permute", "Permutation", [LocalizableOpInterface]> {
  let summary = "Dim i of the result is dim dims[i] of self";
  let arguments = (ins Aten_Tensor:$self, Aten_Dims:$dims);
  let assemblyFormat = "$self $dims attr-dict `:` functional-type(operands, results)";
  let shardBy = "permuteRule(op)";
  let hasFolder = 1;
}

def Aten_TransposeOp : Aten_ResultViewOp<"transpose", "Permutation", [LocalizableOpInterface]> {
  let summary = "Swaps two dims";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim0, Aten_Dim:$dim1);
  let assemblyFormat = [{
    $self ` ` `[` $dim0 `,` $dim1 `]` attr-dict `:` functional-type(operands, results)
  }];
  let shardBy = "transposeRule(op)";
  let hasFolder = 1;
}

def Aten_UnsqueezeOp : Aten_ResultViewOp<"unsqueeze", "Reshape", [LocalizableOpInterface]> {
  let summary = "Puts in a dim of size 1, which is dim `dim` of the result";
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim);
  let assemblyFormat = "$self `dim` $dim attr-dict `:` functional-type(operands, results)";
  let shardBy = "unsqueezeRule(op)";
  let runsAs = "KernelForm::LoopView";
}

def Aten_SqueezeOp : Aten_ResultViewOp<"squeeze", "Reshape", [LocalizableOpInterface]> {
  let summary = "Removes dims, all of which have size 1";
  let description = [{
    Unlike ATen's, this op never keeps a dim that is listed: an importer lists those of size 1 only. So
    the op means the same on the shards of a tensor.
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Dims:$dim);
  let assemblyFormat = "$self `dim` $dim attr-dict `:` functional-type(operands, results)";
  let shardBy = "squeezeRule(op)";
  let runsAs = "KernelForm::LoopView";
}

def Aten_FlipOp : Aten_RearrangementOp<"flip"> {
  let summary = "Reverses dims";
  let arguments = (ins Aten_Tensor:$self, Aten_Dims:$dims);
  let assemblyFormat = "$self $dims attr-dict `:` functional-type(operands, results)";
  let shardBy = "flipRule(op)";
  let runsAs = "KernelForm::ComputedPositions";
}

//===--------------------------------------------------------------------------------------------===//
// Parts and wholes
//===--------------------------------------------------------------------------------------------===//

def Aten_SliceOp : Aten_ResultViewOp<"slice", "Part", [AttrSizedOperandSegments]> {
  let summary = "Elements start, start + step, ... before end along a dim";
  let description = [{
    As in Python, a negative bound counts from the end, and both are clipped to the tensor. Where the
    dim's size is static, canonicalisation makes both lie in [0, size]. No end is the largest i64.

    ```mlir
    %y = aten.slice %x dim 1 [0 : %n : 1] : (tensor<2x16xf32>) -> tensor<2x?xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, DefaultValuedAttr<I64Attr, "0">:$static_start,
                       Optional<Index>:$start,
                       DefaultValuedAttr<I64Attr, "std::numeric_limits<int64_t>::max()">:$static_end,
                       Optional<Index>:$end, DefaultValuedAttr<I64Attr, "1">:$step);
  let assemblyFormat = [{
    $self `dim` $dim ` ` `[` custom<DynamicIndex>($start, $static_start) `:`
    custom<DynamicIndex>($end, $static_end) `:` $step `]` attr-dict
    `:` `(` type($self) `)` `->` type($result)
  }];
  let hasCanonicalizeMethod = 1;
  let hasFolder = 1;
  let shardBy = "sliceRule(op)";
}

def Aten_SelectOp : Aten_ResultViewOp<"select", "Part"> {
  let summary = "The slice at one position of a dim, which vanishes";
  let description = [{
    A negative position counts from the end.
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Dim:$dim, I64Attr:$static_index,
                       Optional<Index>:$index);
  let assemblyFormat = [{
    $self `dim` $dim `at` custom<DynamicIndex>($index, $static_index) attr-dict
    `:` `(` type($self) `)` `->` type($result)
  }];
  let shardBy = "selectRule(op)";
}

def Aten_SplitWithSizesOp : Aten_TensorViewOp<"split_with_sizes", "Part"> {
  let summary = "Cuts a dim into consecutive parts of the given sizes (also split, chunk)";
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$static_split_sizes,
                       Variadic<Index>:$split_sizes, DefaultValuedAttr<Aten_Dim, "0">:$dim);
  let results = (outs Variadic<Aten_Tensor>:$parts);
  let assemblyFormat = [{
    $self custom<DynamicIndexList>($split_sizes, $static_split_sizes) `dim` $dim attr-dict
    `:` `(` type($self) `)` `->` `(` type($parts) `)`
  }];
  let shardBy = "splitRule(op)";
}

def Aten_CatOp : Aten_RearrangementOp<"cat"> {
  let summary = "Concatenation along a dim, in the promoted element type";
  let arguments = (ins Variadic<Aten_Tensor>:$tensors, DefaultValuedAttr<Aten_Dim, "0">:$dim);
  let assemblyFormat = [{
    $tensors `dim` $dim attr-dict `:` functional-type($tensors, $result)
  }];
  let shardBy = "catRule(op)";
  let runsAs = "KernelForm::Concatenation";
}

def Aten_StackOp : Aten_RearrangementOp<"stack", [LocalizableOpInterface]> {
  let summary = "Concatenation along a new dim of tensors of one shape";
  let arguments = (ins Variadic<Aten_Tensor>:$tensors, DefaultValuedAttr<Aten_Dim, "0">:$dim);
  let assemblyFormat = [{
    $tensors `dim` $dim attr-dict `:` functional-type($tensors, $result)
  }];
  let shardBy = "stackRule(op)";
  let runsAs = "KernelForm::Concatenation";
}

//===--------------------------------------------------------------------------------------------===//
// Borders and triangles
//===--------------------------------------------------------------------------------------------===//

def Aten_ConstantPadNdOp : Aten_RearrangementOp<"constant_pad_nd"> {
  let summary = "Adds elements of one value around a tensor";
  let description = [{
    `pad` is a list of pairs (before, after), for the last dim first. A negative width cuts off.
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$pad,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let assemblyFormat = "$self $pad attr-dict `:` functional-type(operands, results)";
  let shardBy = "padRule(op)";
  let runsAs = "KernelForm::ComputedPositions";
}

class Aten_TriangleOp<string mnemonic, string formula>
    : Aten_RearrangementOp<mnemonic> {
  let summary = formula;
  let inferBy = "inferTriangle";
  let arguments = (ins Aten_Tensor:$self, DefaultValuedAttr<I64Attr, "0">:$diagonal);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let runsAs = "KernelForm::Elementwise";
  let shardBy = "elementwiseRule(op, {{0}})"; // by global rows and columns
}
def Aten_TrilOp : Aten_TriangleOp<"tril", "Sets elements to zero where column > row + diagonal, in the last two dims">;
def Aten_TriuOp : Aten_TriangleOp<"triu", "Sets elements to zero where column < row + diagonal, in the last two dims">;

#endif // SHARDC_DIALECTS_ATEN_VIEWS_TD
