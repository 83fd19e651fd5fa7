// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-train-step="train={loss: loss, micro_batches: 2}" | FileCheck %s

// The steps drop, each micro-batch other elements, and their gradients are dropped alike; forward does not.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
// CHECK-NOT: aten.random
// CHECK-NOT: aten.dropout
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: dist.kind = "state_mutation", dist.name = "random.offset"
// CHECK: %[[MASK:.*]] = aten.lt
// CHECK: aten.dropout %{{.*}}, %[[MASK]] {p = 2.500000e-01 : f64}
// CHECK: aten.dropout %{{.*}}, %[[MASK]] {{{.*}}p = 2.500000e-01 : f64}
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: dist.kind = "state_mutation", dist.name = "random.offset"
// CHECK: aten.dropout
#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
#P = #dist.layout<#mesh, [P(sum)]>
module attributes {dist.mesh = #mesh} {
func.func @forward(%x: tensor<8x4xf32, #S> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<2x4xf32, #R> {dist.kind = "parameter", dist.name = "w"},
                   %seed: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"},
        tensor<i64, #R> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %y = aten.linear %x, %w : (tensor<8x4xf32, #S>, tensor<2x4xf32, #R>) -> tensor<8x2xf32, #S>
  %n = aten.random "uniform" [8, 2] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<8x2xf32, #S>
  %k = aten.constant dense<0.75> : tensor<f32> -> tensor<f32, #R>
  %m = aten.lt %n, %k : (tensor<8x2xf32, #S>, tensor<f32, #R>) -> tensor<8x2xi1, #S>
  %d = aten.dropout %y, %m {p = 0.25 : f64} : (tensor<8x2xf32, #S>, tensor<8x2xi1, #S>) -> tensor<8x2xf32, #S>
  %s = aten.sum %d : (tensor<8x2xf32, #S>) -> tensor<f32, #P>
  %l = dist.redistribute %s : tensor<f32, #P> to tensor<f32, #R>
  %c = aten.constant dense<16> : tensor<i64> -> tensor<i64, #R>
  %next = aten.add %offset, %c : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<i64, #R>
  return %l, %next : tensor<f32, #R>, tensor<i64, #R>
}
}
