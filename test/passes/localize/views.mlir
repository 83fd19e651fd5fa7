// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#heads = #dist.layout<#mesh, [S(2, granule = 16)]>
#inner = #dist.layout<#mesh, [S(0, blocks = 3)]>

// CHECK-LABEL: func.func @split_heads
// CHECK: aten.view %{{.*}} [2, 5, 2, 16] : (tensor<2x5x32xf32>) -> tensor<2x5x2x16xf32>
func.func @split_heads(%x: tensor<2x5x128xf32, #S2>) -> tensor<2x5x8x16xf32, #S2> {
  %y = aten.view %x [2, 5, 8, 16] : (tensor<2x5x128xf32, #S2>) -> tensor<2x5x8x16xf32, #S2>
  return %y : tensor<2x5x8x16xf32, #S2>
}

// Six heads over four ranks: 2, 2, 2, 0; of the merged dim 32, 32, 32, 0.
// CHECK-LABEL: func.func @uneven_heads
// CHECK: %[[HEADS:.*]] = dist.extent #dist.extents<6 over #mesh ["tp"]>
// CHECK: %[[SPLIT:.*]] = aten.view %{{.*}} [2, 5, %[[HEADS]], 16] : (tensor<2x5x?xf32>) -> tensor<2x5x?x16xf32>
// CHECK: %[[WIDTH:.*]] = dist.extent #dist.extents<96 over #mesh ["tp"(granule = 16)]>
// CHECK: aten.view %{{.*}} [2, 5, %[[WIDTH]]] : (tensor<2x5x?x16xf32>) -> tensor<2x5x?xf32>
func.func @uneven_heads(%x: tensor<2x5x96xf32, #heads>) -> tensor<2x5x96xf32, #heads> {
  %y = aten.view %x [2, 5, 6, 16] : (tensor<2x5x96xf32, #heads>) -> tensor<2x5x6x16xf32, #S2>
  %t = aten.relu %y : (tensor<2x5x6x16xf32, #S2>) -> tensor<2x5x6x16xf32, #S2>
  %z = aten.view %t [2, 5, 96] : (tensor<2x5x6x16xf32, #S2>) -> tensor<2x5x96xf32, #heads>
  return %z : tensor<2x5x96xf32, #heads>
}

// An inner dim that is sharded makes blocks of the merged one.
// CHECK-LABEL: func.func @merge_inner
// CHECK: aten.view %{{.*}} [6] : (tensor<3x2xf32>) -> tensor<6xf32>
func.func @merge_inner(%x: tensor<3x8xf32, #S1>) -> tensor<24xf32, #inner> {
  %y = aten.view %x [24] : (tensor<3x8xf32, #S1>) -> tensor<24xf32, #inner>
  return %y : tensor<24xf32, #inner>
}

// CHECK-LABEL: func.func @expand_sharded
// CHECK: aten.expand %{{.*}} [2, 3] : (tensor<2x1xf32>) -> tensor<2x3xf32>
func.func @expand_sharded(%x: tensor<8x1xf32, #S0>) -> tensor<8x3xf32, #S0> {
  %y = aten.expand %x [8, 3] : (tensor<8x1xf32, #S0>) -> tensor<8x3xf32, #S0>
  return %y : tensor<8x3xf32, #S0>
}

// What a dim of size 1 becomes may be sharded: each rank repeats what it needs, 3, 3, 3 and 1 times.
// CHECK-LABEL: func.func @expand_to_sharded
// CHECK: %[[N:.*]] = dist.extent #dist.extents<10 over #mesh ["tp"]>
// CHECK: aten.expand %{{.*}} [8, %[[N]]] : (tensor<8x1xf32>) -> tensor<8x?xf32>
func.func @expand_to_sharded(%x: tensor<8x1xf32, #R>) -> tensor<8x10xf32, #S1> {
  %y = aten.expand %x [8, 10] : (tensor<8x1xf32, #R>) -> tensor<8x10xf32, #S1>
  return %y : tensor<8x10xf32, #S1>
}

// Of nine rows of seven over four ranks (3, 3, 3, 0) to seven of nine (2, 2, 2, 1): the first keeps 18 of its 21 elements.
// CHECK-LABEL: func.func @other_rows
// CHECK: dist.all_to_all
// CHECK: aten.view %{{.*}} [%{{.*}}, 9] : (tensor<?xf32>) -> tensor<?x9xf32>
func.func @other_rows(%x: tensor<9x7xf32, #S0>) -> tensor<7x9xf32, #S0> {
  %y = aten.view %x [7, 9] : (tensor<9x7xf32, #S0>) -> tensor<7x9xf32, #S0>
  return %y : tensor<7x9xf32, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S0 = #dist.layout<#mesh, [S(0)]>

// Rows are not columns.
func.func @refused(%m: tensor<4x8xf32, #S1>) -> tensor<32xf32, #S0> {
  // expected-error @+1 {{a rank would need elements of other ranks; shard whole units of the inner dims (a granule), or replicate the dim before the view}}
  %z = aten.view %m [32] : (tensor<4x8xf32, #S1>) -> tensor<32xf32, #S0>
  return %z : tensor<32xf32, #S0>
}
