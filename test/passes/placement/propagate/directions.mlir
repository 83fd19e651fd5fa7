// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// What one tensor is asked reaches every tensor that shares the factor, whether it is computed before or after.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @forwards(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK-SAME: -> (tensor<8x64xf32> {dist.sharding = #sharding_S0tp})
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @forwards(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8x64xf32> {
    %0 = aten.neg %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %1 = aten.neg %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
  }

  // The result binds, what leads to it follows; dim 1 of the result is dim 0 of the argument.
  // CHECK-LABEL: func.func @backwards(
  // CHECK-SAME: %{{.*}}: tensor<64x8xf32> {dist.sharding = #sharding_S0tp}
  // CHECK-SAME: -> (tensor<8x64xf32> {dist.annotation = #{{.*}}, dist.sharding = #sharding_S1tp_given})
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  // CHECK: aten.permute %{{.*}} [1, 0] {dist.sharding = [#sharding_S1tp]}
  func.func @backwards(%x: tensor<64x8xf32>) -> (tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>}) {
    %0 = aten.neg %x : (tensor<64x8xf32>) -> tensor<64x8xf32>
    %1 = aten.permute %0 [1, 0] : (tensor<64x8xf32>) -> tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
  }

  // From one weight of a two-layer network to all else: the first is split by rows, the second by columns, and what
  // the second returns is not split, for every rank has a part of each sum.
  // CHECK-LABEL: func.func @both(
  // CHECK-SAME: %{{.*}}: tensor<8x64xf32> {dist.sharding = #sharding_open}
  // CHECK-SAME: %{{.*}}: tensor<256x64xf32> {dist.sharding = #sharding_S0tp}
  // CHECK-SAME: %{{.*}}: tensor<64x256xf32> {dist.annotation = #{{.*}}, dist.sharding = #sharding_S1tp_given}
  // CHECK-SAME: -> (tensor<8x64xf32> {dist.sharding = #sharding_open})
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S1tp]}
  // CHECK: aten.gelu %{{.*}} {dist.sharding = [#sharding_S1tp]}
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_open]}
  func.func @both(%x: tensor<8x64xf32>, %up: tensor<256x64xf32>,
                  %down: tensor<64x256xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>}) -> tensor<8x64xf32> {
    %0 = aten.linear %x, %up : (tensor<8x64xf32>, tensor<256x64xf32>) -> tensor<8x256xf32>
    %1 = aten.gelu %0 : (tensor<8x256xf32>) -> tensor<8x256xf32>
    %2 = aten.linear %1, %down : (tensor<8x256xf32>, tensor<64x256xf32>) -> tensor<8x64xf32>
    return %2 : tensor<8x64xf32>
  }
}
