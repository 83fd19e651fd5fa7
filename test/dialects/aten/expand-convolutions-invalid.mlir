// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-expand-convolutions --verify-diagnostics

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x?x3xf32>) -> tensor<2x4x?x6xf32> {
  // expected-error @+1 {{cannot be lowered: the sizes of its kernel are not known}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x?x3xf32>) -> tensor<2x4x?x6xf32>
  return %y : tensor<2x4x?x6xf32>
}
