// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// A weak annotation says how a tensor is stored. Where something else is asked of the axis, ops gather it (`storage`);
// where nothing is, they compute with it as it is stored.
#mesh = #dist.mesh<["dp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @batch_has_the_axis(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given weak storage]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0dp]}
  func.func @batch_has_the_axis(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["weak"]}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // CHECK-LABEL: func.func @nobody_else_asks(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given weak]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S1dp_weak]}
  func.func @nobody_else_asks(%x: tensor<8x64xf32>,
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["weak"]}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // To look at what is stored in another way is no computation with it: the transposed weight is not asked to be
  // sharded, and activations do not move for it.
  // CHECK-LABEL: func.func @through_a_view(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given weak storage]>
  // CHECK: aten.permute %{{.*}} {dist.sharding = [#sharding_open]}
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0dp]}
  func.func @through_a_view(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<64x32xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["weak"]}) -> tensor<8x32xf32> {
    %0 = aten.permute %w [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %1 = aten.linear %x, %0 : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %1 : tensor<8x32xf32>
  }
}
