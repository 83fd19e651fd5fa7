// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of images: a window slides over the last two dims, height and width.
#ifndef SHARDC_DIALECTS_ATEN_SPATIAL_TD
#define SHARDC_DIALECTS_ATEN_SPATIAL_TD

include "dialects/aten/AtenBase.td"

/// How the window slides: lists of two numbers, for height and width, or of one for both. Position i
/// of the window covers elements `i * stride - padding + j * dilation`, j = 0 ... kernel - 1.
class Aten_SpatialOp<string mnemonic, list<Trait> traits = []> : Aten_Op<mnemonic, traits> {
  let results = (outs Aten_Tensor:$result);
  let runsAs = "KernelForm::ComputedPositions";
  code windowsDeclaration = [{
    /// Of height and width.
    std::array<::shardc::aten::Window, 2> getWindows();
  }];
}

def Aten_Conv2dOp : Aten_SpatialOp<"conv2d", [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "Computes the cross-correlation of images with kernels, plus bias";
  let description = [{
    `result[n, o, y, x] = sum over c, i, j of input[n, c', y * stride - padding + i * dilation, ...] * weight[o, c, i, j]
    + bias[o]`; elements outside of the image are 0. With `groups`, output channel o sees only the input
    channels of its own group: c' = o / (O / groups) * (C / groups) + c.

    Batch and output channels are sharded freely, input channels into partial sums; with groups, channels by
    whole groups. Height and width are not sharded.

    ```mlir
    %y = aten.conv2d %x, %w bias(%b) stride [2, 2] padding [1, 1] dilation [1, 1]
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
  let moreDeclarations = windowsDeclaration;
  let shardBy = "convolutionRule(op)";
  let runsAs = "KernelForm::None"; // becomes a product of what the window covers
}

def Aten_WindowsOp : Aten_SpatialOp<"windows", [LocalizableOpInterface]> {
  let summary = "Returns the elements under the window at each position";
  let description = [{
    `[N, C, H, W]` becomes `[N, C, kernel height, kernel width, positions, positions]`; elements outside of the
    image are 0. ATen's im2col is a view of this, and a convolution is a matrix product with it.
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation);
  let assemblyFormat = [{
    $self `kernel` $kernel_size `stride` $stride `padding` $padding `dilation` $dilation attr-dict
    `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration;
  let shardBy = "poolRule(op, /*isLinear=*/true)";
}

def Aten_MaxPool2dOp : Aten_SpatialOp<"max_pool2d", [LocalizableOpInterface]> {
  let summary = "Computes the largest element under the window, or NaN if there is one";
  let description = [{
    Elements outside of the image do not count. An empty `stride` is the kernel size. With `ceil_mode` a
    last position may reach beyond the padding, as long as it starts inside of the image or left padding.
  }];
  let arguments = (ins Aten_NumberTensor:$self, DenseI64ArrayAttr:$kernel_size, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, UnitAttr:$ceil_mode);
  let assemblyFormat = [{
    $self `kernel` $kernel_size `stride` $stride `padding` $padding `dilation` $dilation
    (`ceil` $ceil_mode^)? attr-dict `:` functional-type(operands, results)
  }];
  let moreDeclarations = windowsDeclaration;
  let shardBy = "poolRule(op, /*isLinear=*/false)";
}

def Aten_AvgPool2dOp : Aten_SpatialOp<"avg_pool2d", [LocalizableOpInterface]> {
  let summary = "Computes the mean of the elements under the window";
  let description = [{
    The window moves as in max_pool2d. The sum is divided by the number of elements under the window that are in the image
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
  let moreDeclarations = windowsDeclaration;
  let shardBy = "poolRule(op, /*isLinear=*/true)";
}

def Aten_AdaptiveAvgPool2dOp : Aten_SpatialOp<"adaptive_avg_pool2d", [LocalizableOpInterface]> {
  let summary = "Computes the means of `output_size` parts of the image";
  let description = [{
    Part i of n of a dim of size s is `[floor(i * s / n), ceil((i + 1) * s / n))`: parts may overlap by one.
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$output_size);
  let assemblyFormat = "$self `to` $output_size attr-dict `:` functional-type(operands, results)";
  let shardBy = "poolRule(op, /*isLinear=*/true)";
}

#endif // SHARDC_DIALECTS_ATEN_SPATIAL_TD
