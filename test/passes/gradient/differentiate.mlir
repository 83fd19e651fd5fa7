// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward loss=loss" --split-input-file %s | FileCheck %s

// Only what is on the way from a parameter to the loss is differentiated: the comparison and the second output are not.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<8x2xf32> {dist.kind = "output", dist.name = "other"},
// CHECK-SAME: tensor<2x4xf32> {dist.kind = "gradient", dist.name = ["w", "tied"]})
// CHECK: %[[Y:.*]] = aten.linear %arg0, %arg1
// CHECK: %[[M:.*]] = aten.gt %[[Y]]
// CHECK: %[[L:.*]] = aten.mean
// CHECK: %[[O:.*]] = aten.exp %[[Y]]
// CHECK: %[[ONE:.*]] = aten.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[COUNT:.*]] = aten.constant dense<1.600000e+01> : tensor<f32>
// CHECK: %[[EACH:.*]] = aten.div %[[ONE]], %[[COUNT]]
// CHECK: %[[ALL:.*]] = aten.expand %[[EACH]] [8, 2]
// CHECK: %[[ZERO:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[GY:.*]] = aten.where %[[M]], %[[ALL]], %[[ZERO]]
// CHECK: %[[GW:.*]] = aten.tensordot %[[GY]], %arg0 dims [0] [0]
// CHECK-NOT: aten.
// CHECK: return %[[L]], %[[O]], %[[GW]]
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = ["w", "tied"]})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<8x2xf32> {dist.kind = "output", dist.name = "other"}) {
  %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
  %x2 = aten.slice %x dim 1 [0 : 2 : 1] : (tensor<8x4xf32>) -> tensor<8x2xf32>
  %m = aten.gt %y, %x2 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xi1>
  %s = aten.where %m, %y, %x2 : (tensor<8x2xi1>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %l = aten.mean %s : (tensor<8x2xf32>) -> tensor<f32>
  %o = aten.exp %y : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %l, %o : tensor<f32>, tensor<8x2xf32>
}

// -----

// A parameter with two uses has one gradient, of a sum; an operand that was repeated is summed and cast back.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<3xbf16> {dist.kind = "gradient", dist.name = "b"}
// CHECK: %[[FIRST:.*]] = aten.mul %{{.*}}, %arg0
// CHECK: %[[ROWS:.*]] = aten.sum %[[FIRST]] dim [0] to f32 : (tensor<4x3xf32>) -> tensor<3xf32>
// CHECK: %[[ONE:.*]] = aten.to_copy %[[ROWS]] to bf16
// CHECK: %[[TWO:.*]] = aten.to_copy %{{.*}} to bf16
// CHECK: %[[SUM:.*]] = aten.add %[[ONE]], %[[TWO]] : (tensor<3xbf16>, tensor<3xbf16>)
// CHECK: return %{{.*}}, %[[SUM]]
func.func @forward(%x: tensor<4x3xf32> {dist.kind = "input", dist.name = "x"},
                   %b: tensor<3xbf16> {dist.kind = "parameter", dist.name = "b"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %y = aten.add %x, %b : (tensor<4x3xf32>, tensor<3xbf16>) -> tensor<4x3xf32>
  %z = aten.mul %x, %b : (tensor<4x3xf32>, tensor<3xbf16>) -> tensor<4x3xf32>
  %s = aten.mul %y, %z : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %l = aten.sum %s : (tensor<4x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Symbolic sizes come from the forward's values.
// CHECK-LABEL: func.func @forward
// CHECK: %[[N:.*]] = aten.sym_size %{{.*}} dim 0 : (tensor<?x3xf32>) -> index
// CHECK: aten.expand %{{.*}} [%[[N]], 3] : (tensor<f32>) -> tensor<?x3xf32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<f32>, tensor<3xf32>
func.func @forward(%x: tensor<?x3xf32> {dist.kind = "input", dist.name = "x", dist.sizes = [#dist.size<n>, #dist.size<3>]},
                   %b: tensor<3xf32> {dist.kind = "parameter", dist.name = "b"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %y = aten.mul %x, %b : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %l = aten.sum %y : (tensor<?x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
