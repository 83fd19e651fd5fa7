// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries, keys and values of one projection, viewed as [batch, length, 3, heads, size] before they are taken apart. An
// axis that shards the projection shards the heads, not the three: the weight's rows are in three blocks of whole heads,
// and nothing is communicated between the projection and the attention.
// RUN: shard-opt %s --split-input-file "--shardc-place=mesh=tp=2 place=module:qkv=colwise" 2>&1 | FileCheck %s

// CHECK: #[[BLOCKS:.*]] = #dist.layout<#mesh, [S(0, blocks = 3)]>
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: tensor<96x32xf32, #[[BLOCKS]]>
// CHECK: aten.view {{.*}} -> tensor<2x5x3x4x8xf32, #S3tp>
// CHECK-NOT: dist.redistribute
// CHECK: aten.scaled_dot_product_attention
func.func @transposed(%x: tensor<2x5x32xf32> {dist.kind = "input", dist.name = "x"},
                      %w: tensor<96x32xf32> {dist.kind = "parameter", dist.name = "qkv.weight"}) -> (tensor<2x4x5x8xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<2x5x32xf32>, tensor<96x32xf32>) -> tensor<2x5x96xf32> loc(fused<"qkv">["linear"])
  %1 = aten.view %0 [2, 5, 3, 4, 8] : (tensor<2x5x96xf32>) -> tensor<2x5x3x4x8xf32>
  %2 = aten.transpose %1 [3, 1] : (tensor<2x5x3x4x8xf32>) -> tensor<2x4x3x5x8xf32>
  %3 = aten.slice %2 dim 2 [0 : 1 : 1] : (tensor<2x4x3x5x8xf32>) -> tensor<2x4x1x5x8xf32>
  %4 = aten.slice %2 dim 2 [1 : 2 : 1] : (tensor<2x4x3x5x8xf32>) -> tensor<2x4x1x5x8xf32>
  %5 = aten.slice %2 dim 2 [2 : 3 : 1] : (tensor<2x4x3x5x8xf32>) -> tensor<2x4x1x5x8xf32>
  %6 = aten.squeeze %3 dim [2] : (tensor<2x4x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %7 = aten.squeeze %4 dim [2] : (tensor<2x4x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %8 = aten.squeeze %5 dim [2] : (tensor<2x4x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %9 = aten.scaled_dot_product_attention %6, %7, %8 : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  return %9 : tensor<2x4x5x8xf32>
}

// -----

// Through a permutation and another view, which merges the batch with the heads.
// CHECK: #[[BLOCKS:.*]] = #dist.layout<#mesh, [S(0, blocks = 3)]>
// CHECK-LABEL: func.func @merged
// CHECK-SAME: tensor<96x32xf32, #[[BLOCKS]]>
// CHECK-NOT: dist.redistribute
// CHECK: aten.matmul
func.func @merged(%x: tensor<2x5x32xf32> {dist.kind = "input", dist.name = "x"},
                  %w: tensor<96x32xf32> {dist.kind = "parameter", dist.name = "qkv.weight"}) -> (tensor<8x5x5xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<2x5x32xf32>, tensor<96x32xf32>) -> tensor<2x5x96xf32> loc(fused<"qkv">["linear"])
  %1 = aten.view %0 [2, 5, 3, 4, 8] : (tensor<2x5x96xf32>) -> tensor<2x5x3x4x8xf32>
  %2 = aten.permute %1 [2, 0, 3, 1, 4] : (tensor<2x5x3x4x8xf32>) -> tensor<3x2x4x5x8xf32>
  %3 = aten.view %2 [3, 8, 5, 8] : (tensor<3x2x4x5x8xf32>) -> tensor<3x8x5x8xf32>
  %4 = aten.select %3 dim 0 at 0 : (tensor<3x8x5x8xf32>) -> tensor<8x5x8xf32>
  %5 = aten.select %3 dim 0 at 1 : (tensor<3x8x5x8xf32>) -> tensor<8x5x8xf32>
  %6 = aten.transpose %5 [1, 2] : (tensor<8x5x8xf32>) -> tensor<8x8x5xf32>
  %7 = aten.matmul %4, %6 : (tensor<8x5x8xf32>, tensor<8x8x5xf32>) -> tensor<8x5x5xf32>
  return %7 : tensor<8x5x5xf32>
}

// -----

// Where nothing is selected from the outer dim it is what the axis shards, as ever.
// CHECK: #[[PLAIN:.*]] = #dist.layout<#mesh, [S(0, sizes = [64, 32])]>
// CHECK-LABEL: func.func @kept
// CHECK-SAME: tensor<96x32xf32, #[[PLAIN]]>
func.func @kept(%x: tensor<2x5x32xf32> {dist.kind = "input", dist.name = "x"},
                %w: tensor<96x32xf32> {dist.kind = "parameter", dist.name = "qkv.weight"}) -> (tensor<2x5x3x4x8xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w : (tensor<2x5x32xf32>, tensor<96x32xf32>) -> tensor<2x5x96xf32> loc(fused<"qkv">["linear"])
  %1 = aten.view %0 [2, 5, 3, 4, 8] : (tensor<2x5x96xf32>) -> tensor<2x5x3x4x8xf32>
  return %1 : tensor<2x5x3x4x8xf32>
}
