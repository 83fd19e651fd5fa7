// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-to-inference --split-input-file | FileCheck %s

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>

// Nothing is drawn any more, and the offset is not written back; the users get the layout that they had.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<8x4xf32, #{{.*}}> {dist.kind = "output", dist.name = "y"})
// CHECK-NOT: aten.random
// CHECK-NOT: aten.dropout
// CHECK: %[[X:.*]] = dist.redistribute %arg0 : tensor<8x4xf32, #R> to tensor<8x4xf32, #S0dp>
// CHECK-NEXT: %[[Y:.*]] = aten.relu %[[X]]
// CHECK-NEXT: return %[[Y]]
module attributes {dist.mesh = #mesh} {
func.func @forward(%x: tensor<8x4xf32, #R> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<8x4xf32, #S> {dist.kind = "output", dist.name = "y"},
        tensor<i64, #R> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %r = aten.random "uniform" [8, 4] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<8x4xf32, #S>
  %p = aten.constant dense<0.5> : tensor<f32> -> tensor<f32, #R>
  %m = aten.lt %r, %p : (tensor<8x4xf32, #S>, tensor<f32, #R>) -> tensor<8x4xi1, #S>
  %h = dist.redistribute %x : tensor<8x4xf32, #R> to tensor<8x4xf32, #S>
  %d = aten.dropout %h, %m {p = 0.5 : f64} : (tensor<8x4xf32, #S>, tensor<8x4xi1, #S>) -> tensor<8x4xf32, #S>
  %y = aten.relu %d : (tensor<8x4xf32, #S>) -> tensor<8x4xf32, #S>
  %c = aten.constant dense<32> : tensor<i64> -> tensor<i64, #R>
  %next = aten.add %offset, %c : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<i64, #R>
  return %y, %next : tensor<8x4xf32, #S>, tensor<i64, #R>
}
}

// -----

// Noise that is no dropout is drawn in inference too, with other numbers in each run.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: dist.kind = "state_mutation", dist.name = "random.offset"
// CHECK: aten.random
// CHECK-NOT: aten.dropout
func.func @forward(%x: tensor<4xf32> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<4xf32> {dist.kind = "output", dist.name = "y"},
        tensor<i64> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %r = aten.random "normal" [4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  %y = aten.add %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = aten.isnan %x : (tensor<4xf32>) -> tensor<4xi1>
  %d = aten.dropout %y, %m {p = 0.5 : f64} : (tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  %c = aten.constant dense<4> : tensor<i64>
  %next = aten.add %offset, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %d, %next : tensor<4xf32>, tensor<i64>
}
