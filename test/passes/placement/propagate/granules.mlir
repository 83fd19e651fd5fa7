// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file 2>/dev/null | FileCheck %s

// Six heads of 8 over four ranks: whole heads, two on each of the first three ranks and none on the last. The extents of
// the annotation were open, so they follow.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @heads(
  // CHECK-SAME: %{{.*}}: tensor<48x64xf32> {dist.annotation = {{.*}}, dist.sharding = #dist.sharding<#mesh, [S(0, granule = 8) given]>}
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S2by8tp]}
  // CHECK: aten.view %{{.*}} {dist.sharding = [#sharding_S2tp]}
  func.func @heads(%x: tensor<2x5x64xf32>, %w: tensor<48x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<2x5x6x8xf32> {
    %0 = aten.linear %x, %w : (tensor<2x5x64xf32>, tensor<48x64xf32>) -> tensor<2x5x48xf32>
    %1 = aten.view %0 [2, 5, 6, 8] : (tensor<2x5x48xf32>) -> tensor<2x5x6x8xf32>
    return %1 : tensor<2x5x6x8xf32>
  }

  // Extents that are given are not made coarser: 12 elements each are one and a half heads, so heads are not split.
  // CHECK-LABEL: func.func @given_extents(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0, granule = 12) given fixed]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S2by12tp_fixed]}
  // CHECK: aten.view %{{.*}} {dist.sharding = [#sharding_open]}
  func.func @given_extents(%x: tensor<2x5x64xf32>, %w: tensor<48x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0, granule = 12)]>}) -> tensor<2x5x6x8xf32> {
    %0 = aten.linear %x, %w : (tensor<2x5x64xf32>, tensor<48x64xf32>) -> tensor<2x5x48xf32>
    %1 = aten.view %0 [2, 5, 6, 8] : (tensor<2x5x48xf32>) -> tensor<2x5x6x8xf32>
    return %1 : tensor<2x5x6x8xf32>
  }

  // Explicit sizes go where the dim goes.
  // CHECK-LABEL: func.func @sizes(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0, sizes = [5, 0, 2, 1]) given fixed]>
  // CHECK: aten.permute %{{.*}} {dist.sharding = [#sharding_S1_5_0_2_1_tp_fixed]}
  func.func @sizes(%x: tensor<8x3xf32> {dist.annotation = #dist.layout<#mesh, [S(0, sizes = [5, 0, 2, 1])]>}) -> tensor<3x8xf32> {
    %0 = aten.permute %x [1, 0] : (tensor<8x3xf32>) -> tensor<3x8xf32>
    return %0 : tensor<3x8xf32>
  }

  // Five rows over four ranks are 2, 2, 1, 0: nobody has to say so.
  // CHECK-LABEL: func.func @uneven(
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @uneven(%x: tensor<5x3xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<5x3xf32> {
    %0 = aten.neg %x : (tensor<5x3xf32>) -> tensor<5x3xf32>
    return %0 : tensor<5x3xf32>
  }
}
