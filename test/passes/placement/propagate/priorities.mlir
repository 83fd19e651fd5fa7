// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// Both operands of a product ask for the one axis, the activations for their rows and the weight for its own. The
// stronger annotation has the axis, whatever it costs; neither loses what it was given.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @pinned_weight(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given pinned]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S1tp]}
  func.func @pinned_weight(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["pinned"]}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // CHECK-LABEL: func.func @pinned_activations(
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @pinned_activations(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["pinned"]},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // CHECK-LABEL: func.func @weak_weight(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given weak storage]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @weak_weight(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["weak"]}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // CHECK-LABEL: func.func @weak_activations(
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S1tp]}
  func.func @weak_activations(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["weak"]},
      %w: tensor<32x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // What is made from a pinned tensor alone is pinned too: a weight that is transposed first is as one that is not.
  // CHECK-LABEL: func.func @pinned_through_a_view(
  // CHECK: aten.permute %{{.*}} [1, 0] {dist.sharding = [#sharding_S0tp_pinned]}
  func.func @pinned_through_a_view(%w: tensor<64x32xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>, dist.strength = ["pinned"]}) -> tensor<32x64xf32> {
    %0 = aten.permute %w [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
