// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward loss=loss" --split-input-file %s | FileCheck %s

// A loss that reads one position of each row: the cotangent of the log-softmax is not summed over the row.
// CHECK-LABEL: func.func @forward
// CHECK: %[[P:.*]] = aten.log_softmax
// CHECK: %[[AT:.*]] = aten.expand %{{.*}} [4, 1]
// CHECK: %[[HOT:.*]] = aten.where %{{.*}}, %[[AT]], %{{.*}} : (tensor<4x6xi1>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x6xf32>
// CHECK: %[[E:.*]] = aten.exp %[[P]]
// CHECK: %[[M:.*]] = aten.mul %[[E]], %[[AT]]
// CHECK: aten.sub %[[HOT]], %[[M]]
func.func @forward(%x: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "x"},
                   %at: tensor<4x1xi64> {dist.kind = "input", dist.name = "at"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %p = aten.log_softmax %x dim 1 to f32 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %g = aten.gather %p dim 1 at %at : (tensor<4x6xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %l = aten.sum %g : (tensor<4x1xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Label smoothing reads the whole row as well, so that the row is summed.
// CHECK-LABEL: func.func @forward
// CHECK: %[[G:.*]] = aten.add %{{.*}}, %{{.*}} : (tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK: aten.sum %[[G]] dim [1] keepdim
func.func @forward(%x: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "x"},
                   %at: tensor<4x1xi64> {dist.kind = "input", dist.name = "at"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %p = aten.log_softmax %x dim 1 to f32 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %g = aten.gather %p dim 1 at %at : (tensor<4x6xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %a = aten.sum %g : (tensor<4x1xf32>) -> tensor<f32>
  %b = aten.sum %p : (tensor<4x6xf32>) -> tensor<f32>
  %l = aten.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A mask of the forward's own is no lookup, whatever it looks like.
// CHECK-LABEL: func.func @forward
// CHECK: %[[E:.*]] = aten.exp
// CHECK: aten.sum %{{.*}} dim [1] keepdim
func.func @forward(%x: tensor<4x6xf32> {dist.kind = "parameter", dist.name = "x"},
                   %at: tensor<4x1xi64> {dist.kind = "input", dist.name = "at"}, %w: tensor<4x6xf32> {dist.kind = "input", dist.name = "w"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %zero = aten.constant dense<0.0> : tensor<f32>
  %i = aten.arange [0 : 6 : 1] i64 : tensor<6xi64>
  %p = aten.log_softmax %x dim 1 to f32 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = aten.eq %i, %at : (tensor<6xi64>, tensor<4x1xi64>) -> tensor<4x6xi1>
  %s = aten.where %m, %p, %zero : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %l = aten.sum %s : (tensor<4x6xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
