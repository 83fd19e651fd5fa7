// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file --verify-diagnostics

// What becomes of an annotation that is not as it was written is said, with who wrote it.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  func.func @coarser(%x: tensor<2x5x64xf32>,
      %w: tensor<48x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.origin = ["plan.yaml:3"], dist.name = "q.weight"}) -> tensor<2x5x6x8xf32> {
    // expected-remark @+1 {{'q.weight': S(0) over tp (plan.yaml:3) becomes S(0, sizes = [16, 16, 16, 0]): ops need units of 8}}
    %0 = aten.linear %x, %w : (tensor<2x5x64xf32>, tensor<48x64xf32>) -> tensor<2x5x48xf32>
    %1 = aten.view %0 [2, 5, 6, 8] : (tensor<2x5x48xf32>) -> tensor<2x5x6x8xf32>
    return %1 : tensor<2x5x6x8xf32>
  }

  // Eight heads over four ranks are what S(0) is anyway.
  func.func @the_same(%x: tensor<2x5x64xf32>, %w: tensor<64x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<2x5x8x8xf32> {
    %0 = aten.linear %x, %w : (tensor<2x5x64xf32>, tensor<64x64xf32>) -> tensor<2x5x64xf32>
    %1 = aten.view %0 [2, 5, 8, 8] : (tensor<2x5x64xf32>) -> tensor<2x5x8x8xf32>
    return %1 : tensor<2x5x8x8xf32>
  }
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{annotation [S(0, blocks = 3), S(0)] of tensor 0 (plan.yaml:4): an axis splits pieces of the blocks of another; give the inner axis the blocks}}
  func.func @no_layout(%w: tensor<24x3xf32> {dist.annotation = #dist.layout<#mesh, [S(0, blocks = 3), S(0)]>, dist.origin = ["plan.yaml:4", ""]}) -> tensor<24x3xf32> {
    return %w : tensor<24x3xf32>
  }
}
