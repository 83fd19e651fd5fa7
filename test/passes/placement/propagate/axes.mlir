// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// Several mesh axes: each propagates by itself, and several may split one dim.
#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @apart(
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0dp_S1tp]}
  func.func @apart(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0), ?]>},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [?, S(0)]>}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // One dim, dp outside: the levels are the numbers of the axes, and are not written.
  // CHECK-LABEL: func.func @mesh_order(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given, S(0) given]>
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0dp_S0tp]}
  func.func @mesh_order(%x: tensor<16x3xf32> {dist.annotation = #dist.layout<#mesh, [S(0), S(0)]>}) -> tensor<16x3xf32> {
    %0 = aten.neg %x : (tensor<16x3xf32>) -> tensor<16x3xf32>
    return %0 : tensor<16x3xf32>
  }

  // tp outside.
  // CHECK-LABEL: func.func @other_order(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given level 1, S(0) given level 0]>
  // CHECK: aten.permute %{{.*}} {dist.sharding = [#sharding_S1dp_level_1_S1tp_level_0]}
  func.func @other_order(%x: tensor<16x3xf32> {dist.annotation = #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]>}) -> tensor<3x16xf32> {
    %0 = aten.permute %x [1, 0] : (tensor<16x3xf32>) -> tensor<3x16xf32>
    return %0 : tensor<3x16xf32>
  }

  // Storage is innermost, although dp is the outer axis of the mesh: a gather over dp gives back what tp computes with.
  // CHECK-LABEL: func.func @storage_inside(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given weak storage level 1, S(0) given level 0]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0dp_S1tp_level_0]}
  func.func @storage_inside(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0), ?]>},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0), S(0)]>, dist.strength = ["weak", "normal"]}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }
}
