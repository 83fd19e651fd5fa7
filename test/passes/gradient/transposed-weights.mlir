// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward loss=loss" --canonicalize --split-input-file %s | FileCheck %s

// A weight that lies as [inputs, outputs] has a gradient that is made so, and nothing is transposed behind the product.
// CHECK-LABEL: func.func @forward
// CHECK: %[[GY:.*]] = aten.expand
// CHECK: %[[GW:.*]] = aten.tensordot %arg0, %[[GY]] dims [0, 1] [0, 1] : (tensor<2x8x4xf32>, tensor<2x8x3xf32>) -> tensor<4x3xf32>
// CHECK: return %{{.*}}, %[[GW]]
module {
func.func @forward(%x: tensor<2x8x4xf32> {dist.kind = "input", dist.name = "x"},
                    %w: tensor<4x3xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %t = aten.permute %w [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %y = aten.linear %x, %t : (tensor<2x8x4xf32>, tensor<3x4xf32>) -> tensor<2x8x3xf32>
  %l = aten.mean %y : (tensor<2x8x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
}

// -----

// CHECK-LABEL: func.func @forward
// CHECK: %[[GY:.*]] = aten.expand
// CHECK: %[[GW:.*]] = aten.tensordot %[[GY]], %arg0 dims [0] [0] : (tensor<8x3xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[GW]]
module {
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                      %w: tensor<3x4xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %t = aten.transpose %w [0, 1] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = aten.mm %x, %t : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %l = aten.mean %y : (tensor<8x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
}
