// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --shardc-place=mesh=dp=2 %s | FileCheck %s

// A gradient that the model computes itself (a joint graph) ends in the layout of what it belongs to: the parameter is
// gathered for use, and its gradient, of which each rank has a part, is reduced and scattered.
#mesh = #dist.mesh<["dp" = 2]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @stored(
  // CHECK-SAME: tensor<6xf32, #S0dp> {dist.kind = "parameter"
  // CHECK-SAME: -> (tensor<6xf32, #S0dp> {dist.kind = "gradient"
  // CHECK: %[[SUM:.*]] = aten.sum %{{.*}} -> tensor<6xf32, #Pdp>
  // CHECK: %[[OWN:.*]] = dist.redistribute %[[SUM]] : tensor<6xf32, #Pdp> to tensor<6xf32, #S0dp>
  // CHECK: return %[[OWN]]
  func.func @stored(%w: tensor<6xf32> {dist.kind = "parameter", dist.name = ["tied", "w"], dist.annotation = #dist.layout<#mesh, [S(0)]>},
                    %x: tensor<4x6xf32> {dist.kind = "input", dist.name = "x", dist.annotation = #dist.layout<#mesh, [S(0)]>})
      -> (tensor<6xf32> {dist.kind = "gradient", dist.name = "w"}) {
    %0 = aten.mul %x, %w : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
    %1 = aten.sum %0 dim [0] : (tensor<4x6xf32>) -> tensor<6xf32>
    return %1 : tensor<6xf32>
  }

  // What the plan asks for holds, and a gradient of nothing that is known here is an output like others.
  // CHECK-LABEL: func.func @asked(
  // CHECK-SAME: tensor<6xf32, #S0dp> {dist.kind = "parameter"
  // CHECK-SAME: -> (tensor<6xf32, #R> {dist.kind = "gradient"
  // CHECK-SAME: tensor<4x6xf32, #S0dp> {dist.kind = "gradient", dist.name = "other"}
  func.func @asked(%w: tensor<6xf32> {dist.kind = "parameter", dist.name = "w", dist.annotation = #dist.layout<#mesh, [S(0)]>},
                   %x: tensor<4x6xf32> {dist.kind = "input", dist.name = "x", dist.annotation = #dist.layout<#mesh, [S(0)]>})
      -> (tensor<6xf32> {dist.kind = "gradient", dist.name = "w", dist.annotation = #dist.layout<#mesh, [R]>},
          tensor<4x6xf32> {dist.kind = "gradient", dist.name = "other"}) {
    %0 = aten.mul %x, %w : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
    %1 = aten.sum %0 dim [0] : (tensor<4x6xf32>) -> tensor<6xf32>
    return %1, %0 : tensor<6xf32>, tensor<4x6xf32>
  }
}
