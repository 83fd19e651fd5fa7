// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A projection whose features are cut into parts of several sizes. An axis that shards it shards every part: the weight's
// rows are in blocks of these sizes, and nothing is communicated where the parts are taken out.
// RUN: shard-opt %s --split-input-file "--shardc-place=mesh=tp=2 place=module:qkv=colwise" 2>&1 | FileCheck %s
// RUN: shard-opt %s --split-input-file "--shardc-place=mesh=tp=2 place='param:qkv.weight=tp:S(0, blocks = [32, 16, 16])'" 2>&1 | FileCheck %s

// Four heads of queries, which share two of keys and values in pairs.
// CHECK: #[[BLOCKS:.*]] = #dist.layout<#mesh, [S(0, blocks = [32, 16, 16])]>
// CHECK-LABEL: func.func @grouped
// CHECK-SAME: tensor<64x32xf32, #[[BLOCKS]]>
// CHECK-NOT: dist.redistribute
// CHECK: aten.scaled_dot_product_attention
func.func @grouped(%x: tensor<2x5x32xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<64x32xf32> {dist.kind = "parameter", dist.name = "qkv.weight"}) -> (tensor<2x4x5x8xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<2x5x32xf32>, tensor<64x32xf32>) -> tensor<2x5x64xf32> loc(fused<"qkv">["linear"])
  %1 = aten.slice %0 dim 2 [0 : 32 : 1] : (tensor<2x5x64xf32>) -> tensor<2x5x32xf32>
  %2 = aten.slice %0 dim 2 [32 : 48 : 1] : (tensor<2x5x64xf32>) -> tensor<2x5x16xf32>
  %3 = aten.slice %0 dim 2 [48 : 64 : 1] : (tensor<2x5x64xf32>) -> tensor<2x5x16xf32>
  %4 = aten.view %1 [2, 5, 4, 8] : (tensor<2x5x32xf32>) -> tensor<2x5x4x8xf32>
  %5 = aten.view %2 [2, 5, 2, 8] : (tensor<2x5x16xf32>) -> tensor<2x5x2x8xf32>
  %6 = aten.view %3 [2, 5, 2, 8] : (tensor<2x5x16xf32>) -> tensor<2x5x2x8xf32>
  %7 = aten.transpose %4 [1, 2] : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
  %8 = aten.transpose %5 [1, 2] : (tensor<2x5x2x8xf32>) -> tensor<2x2x5x8xf32>
  %9 = aten.transpose %6 [1, 2] : (tensor<2x5x2x8xf32>) -> tensor<2x2x5x8xf32>
  %10 = aten.scaled_dot_product_attention %7, %8, %9 gqa : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32>
  return %10 : tensor<2x4x5x8xf32>
}
