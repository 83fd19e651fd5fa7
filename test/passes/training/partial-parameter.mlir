// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-train-step="train={loss: loss, optimizer: sgd, micro_batches: 2}" | FileCheck %s
// A bias behind a product that is partial over tp is made partial itself. Its gradient comes back replicated, which would be a
// sum over dp too: the sum of micro-batches takes what was there before, so that dp is reduced once.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#S = #dist.layout<#mesh, [S(0), R]>
#SS = #dist.layout<#mesh, [S(0), S(1)]>
#SP = #dist.layout<#mesh, [S(0), P(sum)]>
#W = #dist.layout<#mesh, [R, S(1)]>
#U = #dist.layout<#mesh, [R, S(0)]>
#P = #dist.layout<#mesh, [R, P(sum)]>
#D = #dist.layout<#mesh, [P(sum), R]>

// CHECK-DAG: #[[D:.*]] = #dist.layout<#mesh, [P(sum), R]>
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %[[KEPT:[a-z0-9]+]]: tensor<3xf32, #[[D]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "gradient.b", dist.unsaved}
// CHECK: %[[G:.*]] = aten.sum {{.*}} -> tensor<3xf32>
// CHECK: %[[MINE:.*]] = dist.redistribute %[[G]] : tensor<3xf32> to tensor<3xf32, #[[D]]>
// CHECK: aten.add %[[KEPT]], %[[MINE]]
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<8x5xf32, #S> {dist.kind = "input", dist.name = "x"},
                     %u: tensor<4x5xf32, #U> {dist.kind = "parameter", dist.name = "u"},
                     %w: tensor<3x4xf32, #W> {dist.kind = "parameter", dist.name = "w"},
                     %b: tensor<3xf32, #R> {dist.kind = "parameter", dist.name = "b"})
      -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
    %p = dist.redistribute %b : tensor<3xf32, #R> to tensor<3xf32, #P>
    %h = aten.linear %x, %u : (tensor<8x5xf32, #S>, tensor<4x5xf32, #U>) -> tensor<8x4xf32, #SS>
    %y = aten.linear %h, %w, %p : (tensor<8x4xf32, #SS>, tensor<3x4xf32, #W>, tensor<3xf32, #P>) -> tensor<8x3xf32, #SP>
    %z = dist.redistribute %y : tensor<8x3xf32, #SP> to tensor<8x3xf32, #S>
    %l = aten.sum %z : (tensor<8x3xf32, #S>) -> tensor<f32, #D>
    %r = dist.redistribute %l : tensor<f32, #D> to tensor<f32, #R>
    return %r : tensor<f32, #R>
  }
}
