// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-propagate --split-input-file --verify-diagnostics %s

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{placement needs straight-line code, but the function has several blocks}}
  func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
    cf.br ^next
  ^next:
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{the module has no 'dist.mesh'; run dist-apply-plan with a mesh first}}
func.func @no_mesh(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  func.func @no_rule(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{'math.cos' has no sharding rule (2 ops); implement ShardingRuleOpInterface for it}}
    %0 = math.cos %x : tensor<4xf32>
    // expected-note @+1 {{also here}}
    %1 = math.cos %x : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
