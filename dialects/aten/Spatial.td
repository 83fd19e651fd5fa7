// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of lines, images and volumes: a window slides over the last one, two or three dims, the spatial ones.
#ifndef SHARDC_DIALECTS_ATEN_SPATIAL_TD
#define SHARDC_DIALECTS_ATEN_SPATIAL_TD

include "dialects/aten/AtenBase.td"
include "dialects/aten/WindowInterface.td"

/// How the window slides: lists of one number for each spatial dim, or of one number for all of them. Position i
/// of the window covers elements `i * stride - padding + j * dilation`, j = 0 ... kernel - 1.
class Aten_SpatialOp<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::ComputedPositions";
  code windowsDeclaration = [{
    /// One for each spatial dim.
    ::shardc::aten::Windows getWindows();
  }];
  code partsDeclaration = [{
    std::optional<::shardc::Reduction> getPartReduction();
  }];
}

def Aten_ConvolutionOp
    : Aten_SpatialOp<"convolution", [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>, Aten_WindowOpInterface]> {
  let summary = "Computes the cross-correlation of images with kernels, plus bias (conv1d, conv2d, conv3d)";
  let description = [{
    `result[n, o, y, x] = sum over c, i, j of input[n, c', y * stride - padding + i * dilation, ...] * weight[o, c, i, j]
    + bias[o]`; elements outside of the image are 0. With `groups`, output channel o sees only the input
    channels of its own group: c' = o / (O / groups) * (C / groups) + c. Lines and volumes have one and three spatial dims.

    Batch and output channels are sharded freely, input channels into partial sums; with groups, channels by
    whole groups. Of a sharded spatial dim, ranks have chunks of the image and of the result, and exchange the rows of
    the image that they lack.

    ```mlir
    %y = aten.convolution %x, %w bias(%b) stride [2, 2] padding [1, 1] dilation [1, 1]
        : (tensor<8x64x56x56xf32>, tensor<128x64x3x3xf32>, tensor<128xf32>) -> tensor<8x128x28x28xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$input, Aten_Tensor:$weight, Optional<Aten_Tensor>:$bias,
                       DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
                       DefaultValuedAttr<I64Attr, "1">:$groups);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)? `stride` $stride `padding` $padding `dilation` $dilation
    (`groups` $groups^)? attr-dict `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration # partsDeclaration;
  let shardBy = "convolutionRule(op)";
  let runsAs = "KernelForm::None"; // becomes a product of what the window covers
  let hasCanonicalizer = 1;
}

def Aten_WindowsOp : Aten_SpatialOp<"windows", [Aten_WindowOpInterface]> {
  let summary = "Returns the elements under the window at each position";
  let description = [{
    `[N, C, H, W]` becomes `[N, C, kernel height, kernel width, positions, positions]`, and likewise for lines and volumes;
    elements outside of the image are 0. ATen's im2col is a view of this, and a convolution is a matrix product with it.
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation);
  let assemblyFormat = [{
    $self `kernel` $kernel_size `stride` $stride `padding` $padding `dilation` $dilation attr-dict
    `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration;
  let shardBy = "windowsRule(op, op.getWindows())";
  let hasCanonicalizer = 1;
}

def Aten_FoldOp : Aten_SpatialOp<"fold"> {
  let summary = "Adds elements under the window back to where they were in the image";
  let description = [{
    This is the adjoint of aten.windows: `[N, C, kernel height, kernel width, positions, positions]` becomes
    `[N, C, H, W]`, where H and W are `size`. Elements outside of the image are dropped, and an element that no window covers is 0.
    ATen's col2im is this, and a transposed convolution is a matrix product before it. There may be more positions or fewer than
    the window has in the image.

    ```mlir
    %y = aten.fold %columns to [8, 8] stride [2, 2] padding [1, 1] dilation [1, 1] : (tensor<1x4x3x3x4x4xf32>) -> tensor<1x4x8x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$static_size, Variadic<Index>:$size,
                       DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation);
  let assemblyFormat = [{
    $self `to` custom<DynamicIndexList>($size, $static_size) `stride` $stride `padding` $padding `dilation` $dilation attr-dict
    `:` `(` type($self) `)` `->` type($result)
  }];
  let moreDeclarations = windowsDeclaration # [{
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedSize() {
      return ::mlir::getMixedValues(getStaticSize(), getSize(), getContext());
    }
  }];
  let shardBy = "foldRule(op, op.getWindows())";
}

//===--------------------------------------------------------------------------------------------===//
// Pools: they take an image without a batch too
//===--------------------------------------------------------------------------------------------===//

/// A window of `kernel_size` elements, which has a number for each spatial dim.
class Aten_MaxPoolOpBase<string mnemonic> : Aten_SpatialOp<mnemonic, [Aten_WindowOpInterface]> {
  let arguments = (ins Aten_NumberTensor:$self, DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, UnitAttr:$ceil_mode);
  let assemblyFormat = [{
    $self `kernel` $kernel_size `stride` $stride `padding` $padding `dilation` $dilation
    (`ceil` $ceil_mode^)? attr-dict `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration;
  let shardBy = "poolRule(op, /*isLinear=*/false)";
}

def Aten_MaxPoolOp : Aten_MaxPoolOpBase<"max_pool"> {
  let summary = "Computes the largest element under the window, or NaN if there is one";
  let description = [{
    Elements outside of the image do not count. An empty `stride` is the kernel size. With `ceil_mode` a
    last position may reach beyond the padding, as long as it starts inside of the image or left padding.
  }];
  let moreDeclarations = windowsDeclaration # partsDeclaration;
}

def Aten_MaxPoolPositionsOp : Aten_MaxPoolOpBase<"max_pool_positions"> {
  let summary = "Computes the position of the largest element under the window, as i64";
  let description = [{
    The position is that in the flattened image. Of equal elements the first one counts, of several NaNs the last one. The window moves
    as in max_pool.
  }];
  let moreDeclarations = windowsDeclaration # [{
    /// It is told in the whole image.
    bool isComputedByPosition() { return false; }
  }];
}

def Aten_AvgPoolOp : Aten_SpatialOp<"avg_pool", [Aten_WindowOpInterface]> {
  let summary = "Computes the mean of the elements under the window";
  let description = [{
    The window moves as in max_pool. The sum is divided by the number of elements under the window that are in the image
    or, with `count_include_pad`, in its padding; or by `divisor_override`, if it is given.
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, UnitAttr:$ceil_mode, UnitAttr:$count_include_pad,
                       OptionalAttr<I64Attr>:$divisor_override);
  let assemblyFormat = [{
    $self `kernel` $kernel_size `stride` $stride `padding` $padding (`ceil` $ceil_mode^)?
    (`with_padding` $count_include_pad^)? (`divisor` $divisor_override^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration # partsDeclaration # [{
    /// Otherwise what it divides by depends on where the image ends.
    bool isComputedByPosition() { return getDivisorOverride().has_value(); }
  }];
  let shardBy = "poolRule(op, /*isLinear=*/true)";
}

/// Part i of n of a dim of size s is `[floor(i * s / n), ceil((i + 1) * s / n))`: parts may overlap by one.
class Aten_AdaptivePoolOp<string mnemonic, Type type, string rule, list<Trait> traits = []> : Aten_SpatialOp<mnemonic, traits> {
  let description = [{
    Part i of n of a dim of size s is `[floor(i * s / n), ceil((i + 1) * s / n))`: parts may overlap by one. `output_size` has a number
    for each spatial dim.
  }];
  let arguments = (ins type:$self, DenseI64ArrayAttr:$output_size);
  let assemblyFormat = "$self `to` $output_size attr-dict `:` functional-type(operands, results)";
  let shardBy = rule;
}
def Aten_AdaptiveAvgPoolOp : Aten_AdaptivePoolOp<"adaptive_avg_pool", Aten_FloatTensor,
                                                 "adaptivePoolRule(op, op.getOutputSize(), Reduction::Sum)"> {
  let summary = "Computes the means of `output_size` parts of the image";
}
def Aten_AdaptiveMaxPoolOp : Aten_AdaptivePoolOp<"adaptive_max_pool", Aten_NumberTensor,
                                                 "adaptivePoolRule(op, op.getOutputSize(), Reduction::Max)"> {
  let summary = "Computes the largest elements of `output_size` parts of the image, or NaN where there is one";
}
def Aten_AdaptiveMaxPoolPositionsOp : Aten_AdaptivePoolOp<"adaptive_max_pool_positions", Aten_NumberTensor,
                                                          "adaptivePositionsRule(op, op.getOutputSize().size())", [LocalizableOpInterface]> {
  let summary = "Computes the positions of the largest elements of `output_size` parts of the flattened image, as i64";
}

#endif // SHARDC_DIALECTS_ATEN_SPATIAL_TD
