// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// A constraint binds the value behind it. Both sides see what it asks, but R asks for nothing, so that it stops what
// comes from the other side.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @middle(
  // CHECK-SAME: %{{.*}}: tensor<8xf32> {dist.sharding = #sharding_S0tp}
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  // CHECK: dist.constrain %{{.*}} {dist.sharding = [#sharding_S0tp_given]}
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @middle(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    %1 = dist.constrain %0 : tensor<8xf32> to #dist.layout<#mesh, [S(0)]>
    %2 = aten.neg %1 : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }

  // CHECK-LABEL: func.func @stops(
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  // CHECK: dist.constrain %{{.*}} {dist.sharding = [#sharding_Rtp]}
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_open]}
  func.func @stops(%x: tensor<8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8xf32> {
    %0 = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    %1 = dist.constrain %0 : tensor<8xf32> to #dist.layout<#mesh, [R]>
    %2 = aten.neg %1 : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }

  // A constraint that leaves the axis open is no obstacle.
  // CHECK-LABEL: func.func @open(
  // CHECK: dist.constrain %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @open(%x: tensor<8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8xf32> {
    %0 = dist.constrain %x : tensor<8xf32> to #dist.layout<#mesh, [?]>
    return %0 : tensor<8xf32>
  }
}
