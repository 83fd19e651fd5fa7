// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is not taken apart, whatever the cost.
// RUN: shard-opt --dist-chunk-collectives=chunks=2 %s | FileCheck %s
// RUN: shard-opt --dist-chunk-collectives=chunks=2 --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// RUN: shard-opt --dist-chunk-collectives=chunks=ring %s | FileCheck --check-prefix=RING %s
// STATS-NOT: regions
// STATS-DAG: 2 indivisible
// STATS-DAG: 1 symbolic
// STATS-DAG: 1 uneven
// STATS-NOT: regions

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>

// RING-NOT: dist.permute

// Rows of a weight are no rows of what is computed.
// CHECK-LABEL: func.func @weight(
// CHECK-NOT: aten.slice
// CHECK: return
func.func @weight(%x: tensor<6x16xf32>, %w: tensor<4x16xf32>) -> tensor<6x16xf32> {
  %g = dist.all_gather over #tp %w dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %y = aten.linear %x, %g : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// Rows that are summed over.
// CHECK-LABEL: func.func @contracted(
// CHECK-NOT: aten.slice
// CHECK: return
func.func @contracted(%x: tensor<4x5xf32>, %y: tensor<16x8xf32>) -> tensor<5x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x5xf32>) -> tensor<16x5xf32>
  %z = aten.tensordot %g, %y dims [0] [0] : (tensor<16x5xf32>, tensor<16x8xf32>) -> tensor<5x8xf32>
  return %z : tensor<5x8xf32>
}

// CHECK-LABEL: func.func @uneven(
// CHECK-NOT: aten.slice
// CHECK: return
func.func @uneven(%x: tensor<?x16xf32>, %w: tensor<8x16xf32>) -> tensor<14x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<?x16xf32>) -> tensor<14x16xf32>
  %y = aten.linear %g, %w : (tensor<14x16xf32>, tensor<8x16xf32>) -> tensor<14x8xf32>
  return %y : tensor<14x8xf32>
}

// CHECK-LABEL: func.func @listed(
// CHECK-NOT: aten.slice
// CHECK: return
func.func @listed(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> tensor<12x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 extents [4, 4, 4, 0] : (tensor<4x16xf32>) -> tensor<12x16xf32>
  %y = aten.linear %g, %w : (tensor<12x16xf32>, tensor<8x16xf32>) -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}

// Seven rows have no halves.
// CHECK-LABEL: func.func @seven(
// CHECK-NOT: aten.slice
// CHECK: return
func.func @seven(%x: tensor<7x16xf32>, %w: tensor<8x16xf32>) -> tensor<28x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<7x16xf32>) -> tensor<28x16xf32>
  %y = aten.linear %g, %w : (tensor<28x16xf32>, tensor<8x16xf32>) -> tensor<28x8xf32>
  return %y : tensor<28x8xf32>
}

// What a triangle keeps depends on where its rows are in the whole.
// CHECK-LABEL: func.func @triangles(
// CHECK-NOT: aten.slice
// CHECK: aten.tril {{.*}} -> tensor<16x16xf32>
// CHECK: aten.triu {{.*}} -> tensor<16x16xf32>
// CHECK: return
func.func @triangles(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %t = aten.tril %g : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = aten.linear %t, %w : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %u = aten.triu %y : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = dist.reduce_scatter sum over #tp %u dim 0 : (tensor<16x16xf32>) -> tensor<4x16xf32>
  return %s : tensor<4x16xf32>
}
