// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// Two annotations of one strength ask for the axis on different factors of one product: the factor wins for which the
// op's tensors move fewer bytes, that is, the smaller operand is gathered. Both stay as they are given.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @large_weight(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S1tp]}
  func.func @large_weight(%x: tensor<4x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<4096x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<4x4096xf32> {
    %0 = aten.linear %x, %w : (tensor<4x64xf32>, tensor<4096x64xf32>) -> tensor<4x4096xf32>
    return %0 : tensor<4x4096xf32>
  }

  // CHECK-LABEL: func.func @large_activations(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [S(0) given]>
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @large_activations(%x: tensor<4096x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %w: tensor<4x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<4096x4xf32> {
    %0 = aten.linear %x, %w : (tensor<4096x64xf32>, tensor<4x64xf32>) -> tensor<4096x4xf32>
    return %0 : tensor<4096x4xf32>
  }

  // Only the axis that is asked for twice is in question; the other stays what it is.
  // CHECK-LABEL: func.func @another_dim(
  // CHECK: aten.add %{{.*}} {dist.sharding = [#sharding_S1tp]}
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S1tp]}
  func.func @another_dim(%a: tensor<4x1xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %b: tensor<4x64xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>}) -> tensor<4x64xf32> {
    %0 = aten.add %a, %b : (tensor<4x1xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %1 = aten.neg %0 : (tensor<4x64xf32>) -> tensor<4x64xf32>
    return %1 : tensor<4x64xf32>
  }
}
