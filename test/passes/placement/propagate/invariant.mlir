// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// What is made from constants alone is the same on every rank without communication: it is whole, weakly, and nothing
// that uses it is asked to be.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @forward(
  // CHECK: aten.arange {{.*}} {dist.sharding = [#sharding_Rtp_weak]}
  // CHECK: aten.unsqueeze {{.*}} {dist.sharding = [#sharding_Rtp_weak]}
  // CHECK: aten.embedding {{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @forward(%w: tensor<32x8xf32>) -> (tensor<16x8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}, tensor<16x1xi64>) {
    %p = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
    %column = aten.unsqueeze %p dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
    %e = aten.embedding %w at %p : (tensor<32x8xf32>, tensor<16xi64>) -> tensor<16x8xf32>
    return %e, %column : tensor<16x8xf32>, tensor<16x1xi64>
  }
}
