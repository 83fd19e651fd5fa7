// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate=loss=loss %s | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#R = #dist.layout<#mesh, [R, R]>
#X = #dist.layout<#mesh, [S(0), R]>
#W = #dist.layout<#mesh, [R, S(0)]>
#Y = #dist.layout<#mesh, [S(0), S(1)]>
#P = #dist.layout<#mesh, [P(sum), P(sum)]>

// The forward keeps its layouts, and the backward has none, but for the redistributions: that of a redistribute goes back to the
// layout of its operand, partial or not, and a gradient goes to its parameter's.
// CHECK-DAG: #[[AY:.*]] = #dist.sharding<#mesh, [S(0), S(1)]>
// CHECK-DAG: #[[AW:.*]] = #dist.sharding<#mesh, [?, S(0)]>
// CHECK-LABEL: func.func @gradients
// CHECK-SAME: tensor<16x32xf32, #[[W:[A-Za-z0-9_]+]]> {dist.kind = "gradient", dist.name = "w"}
// CHECK: %[[S:.*]] = aten.sum %{{.*}} -> tensor<f32, #[[P:[A-Za-z0-9_]+]]>
// CHECK: dist.redistribute %[[S]]
// CHECK: %[[ONE:.*]] = aten.constant {dist.sharding = [#sharding_open]} dense<1.000000e+00> : tensor<f32>
// CHECK: %[[BACK:.*]] = dist.redistribute backward %[[ONE]] : tensor<f32> to tensor<f32, #[[P]]>
// CHECK: %[[GY:.*]] = aten.expand %[[BACK]] [8, 16] {dist.sharding = [#[[AY]]]}
// CHECK-SAME: -> tensor<8x16xf32>
// CHECK: %[[GW:.*]] = aten.tensordot %[[GY]], %arg0 dims [0] [0] {dist.sharding = [#[[AW]]]}
// CHECK-SAME: -> tensor<16x32xf32>
// CHECK: %[[OUT:.*]] = dist.redistribute %[[GW]] : tensor<16x32xf32> to tensor<16x32xf32, #[[W]]>
// CHECK: return %{{.*}}, %[[OUT]]
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<8x32xf32, #X> {dist.kind = "input", dist.name = "x"},
                     %w: tensor<16x32xf32, #W> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
    %y = aten.linear %x, %w : (tensor<8x32xf32, #X>, tensor<16x32xf32, #W>) -> tensor<8x16xf32, #Y>
    %s = aten.sum %y : (tensor<8x16xf32, #Y>) -> tensor<f32, #P>
    %l = dist.redistribute %s : tensor<f32, #P> to tensor<f32, #R>
    return %l : tensor<f32, #R>
  }
}
