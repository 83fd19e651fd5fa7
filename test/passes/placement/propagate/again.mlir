// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate -o %t.once
// RUN: shard-opt %t.once --dist-propagate -o %t.twice
// RUN: diff %t.once %t.twice
// RUN: FileCheck %s --input-file %t.once
// RUN: shard-opt %s --dist-propagate --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// Annotations say what propagation starts from, and nothing else does: a second run finds the same, and what was there
// before is overwritten.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK: aten.neg %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @forward(%x: tensor<8x4xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8x4xf32> {
    %0 = aten.neg %x {dist.sharding = [#dist.sharding<#mesh, [S(1) given]>]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  // CHECK: func.func private @elsewhere(tensor<8xf32>)
  func.func private @elsewhere(tensor<8xf32>)
}

// STATS: dist-propagate
// STATS: 1 sharded
