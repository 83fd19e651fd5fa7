// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s
// RUN: shard-opt %s --dist-propagate --dist-place --split-input-file | FileCheck %s --check-prefix=PLACED

// A sum whose terms are on several ranks is partial. Propagation asks nothing of it, for a partial value is what an op
// makes and nobody wants; placement says so in the type.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @contraction(
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_open]}
  // PLACED-LABEL: func.func @contraction(
  // PLACED: aten.linear {{.*}} -> tensor<8x32xf32, #Ptp>
  // PLACED: dist.redistribute %{{.*}} : tensor<8x32xf32, #Ptp> to tensor<8x32xf32, #R>
  func.func @contraction(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>},
                         %w: tensor<32x64xf32>) -> tensor<8x32xf32> {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // Where a shard of the sum is wanted, that is what it is asked to be, although the axis shards what it sums over:
  // placement then scatters as it reduces.
  // CHECK-LABEL: func.func @scattered(
  // CHECK: aten.linear %{{.*}} {dist.sharding = [#sharding_S0tp]}
  // PLACED-LABEL: func.func @scattered(
  // PLACED: dist.redistribute %{{.*}} : tensor<8x32xf32, #Ptp> to tensor<8x32xf32, #S0tp>
  func.func @scattered(%x: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>, dist.strength = ["pinned"]},
      %w: tensor<32x64xf32>) -> (tensor<8x32xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) {
    %0 = aten.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }

  // An argument that comes in partial: it binds, and asks nothing of others.
  // CHECK-LABEL: func.func @argument(
  // CHECK-SAME: dist.sharding = #dist.sharding<#mesh, [P(sum)]>
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_open]}
  // Before or after the negation it is as much to reduce; what computes waits for it, and only views pass it on.
  // PLACED-LABEL: func.func @argument(
  // PLACED-SAME: tensor<8xf32, #Ptp>
  // PLACED: dist.redistribute %{{.*}} : tensor<8xf32, #Ptp> to tensor<8xf32, #R>
  // PLACED: aten.neg {{.*}} -> tensor<8xf32, #R>
  func.func @argument(%x: tensor<8xf32> {dist.annotation = #dist.layout<#mesh, [P(sum)]>}) -> tensor<8xf32> {
    %0 = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
