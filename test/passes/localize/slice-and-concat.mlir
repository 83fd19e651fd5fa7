// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#qkv = #dist.layout<#mesh, [S(1, blocks = 3)]>
#P = #dist.layout<#mesh, [P(sum)]>
#Pmax = #dist.layout<#mesh, [P(max)]>

// A fused weight in blocks of whole heads falls into q, k and v without a word to other ranks.
// CHECK-LABEL: func.func @fused_qkv
// CHECK-NOT: dist.all
// CHECK-DAG: aten.slice %arg0 dim 1 [0 : 4 : 1] : (tensor<5x12xf32>) -> tensor<5x4xf32>
// CHECK-DAG: aten.slice %arg0 dim 1 [4 : 8 : 1] : (tensor<5x12xf32>) -> tensor<5x4xf32>
// CHECK-DAG: aten.slice %arg0 dim 1 [8 : 12 : 1] : (tensor<5x12xf32>) -> tensor<5x4xf32>
func.func @fused_qkv(%x: tensor<5x24xf32, #qkv>) -> (tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>) {
  %q, %k, %v = aten.split_with_sizes %x [8, 8, 8] dim 1 : (tensor<5x24xf32, #qkv>) -> (tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>)
  return %q, %k, %v : tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>
}

// [3, 7) of ten rows: ranks hold [0, 5) and [5, 10), so they keep two rows each, at 3 and at 0.
// CHECK-LABEL: func.func @slice_own_rows
// CHECK: %[[AT:.*]] = dist.extent #dist.extents<table [3, 0] over #mesh>
// CHECK: %[[END:.*]] = arith.addi %[[AT]], %c2
// CHECK: aten.slice %arg0 dim 0 [%[[AT]] : %[[END]] : 1] : (tensor<5xf32>) -> tensor<2xf32>
func.func @slice_own_rows(%x: tensor<10xf32, #S0>) -> tensor<4xf32, #S0> {
  %y = aten.slice %x dim 0 [3 : 7 : 1] : (tensor<10xf32, #S0>) -> tensor<4xf32, #S0>
  return %y : tensor<4xf32, #S0>
}

// Position 7 is on rank 1, at 2; rank 0 sums over nothing.
// CHECK-LABEL: func.func @select_row
// CHECK: dist.extent #dist.extents<table [0, 5] over #mesh>
// CHECK: %[[ROW:.*]] = aten.slice %arg0 dim 0 [%{{.*}} : %{{.*}} : 1] : (tensor<5x3xf32>) -> tensor<?x3xf32>
// CHECK: aten.sum %[[ROW]] dim [0] to f32 : (tensor<?x3xf32>) -> tensor<3xf32>
func.func @select_row(%x: tensor<10x3xf32, #S0>) -> tensor<3xf32, #P> {
  %y = aten.select %x dim 0 at 7 : (tensor<10x3xf32, #S0>) -> tensor<3xf32, #P>
  return %y : tensor<3xf32, #P>
}

// CHECK-LABEL: func.func @select_bool
// CHECK: aten.any %{{.*}} dim [0] : (tensor<?x3xi1>) -> tensor<3xi1>
func.func @select_bool(%x: tensor<10x3xi1, #S0>) -> tensor<3xi1, #Pmax> {
  %y = aten.select %x dim 0 at 7 : (tensor<10x3xi1, #S0>) -> tensor<3xi1, #Pmax>
  return %y : tensor<3xi1, #Pmax>
}

// CHECK-LABEL: func.func @cat_into_blocks
// CHECK: aten.cat %arg0, %arg1, %arg2 dim 1 : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x12xf32>
func.func @cat_into_blocks(%q: tensor<5x8xf32, #S1>, %k: tensor<5x8xf32, #S1>, %v: tensor<5x8xf32, #S1>) -> tensor<5x24xf32, #qkv> {
  %y = aten.cat %q, %k, %v dim 1 : (tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>, tensor<5x8xf32, #S1>) -> tensor<5x24xf32, #qkv>
  return %y : tensor<5x24xf32, #qkv>
}

// PyTorch's empty vector among tensors of another rank has no part in the result, on any rank.
// CHECK-LABEL: func.func @cat_with_empty_vector
// CHECK: aten.cat %arg0, %arg1, %arg1 dim 1 : (tensor<0xf64>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf64>
func.func @cat_with_empty_vector(%e: tensor<0xf64, #R>, %x: tensor<10x4xf32, #S0>) -> tensor<10x8xf64, #S0> {
  %y = aten.cat %e, %x, %x dim 1 : (tensor<0xf64, #R>, tensor<10x4xf32, #S0>, tensor<10x4xf32, #S0>) -> tensor<10x8xf64, #S0>
  return %y : tensor<10x8xf64, #S0>
}

// The triangle counts global rows: rank 1 has rows 3 and 4.
// CHECK-LABEL: func.func @lower_triangle
// CHECK: dist.extent #dist.extents<table [0, 3] over #mesh>
// CHECK: aten.where %{{.*}}, %arg0, %{{.*}} : (tensor<?x5xi1>, tensor<?x5xf32>, tensor<f32>) -> tensor<?x5xf32>
func.func @lower_triangle(%x: tensor<5x5xf32, #S0>) -> tensor<5x5xf32, #S0> {
  %y = aten.tril %x {diagonal = 1 : i64} : (tensor<5x5xf32, #S0>) -> tensor<5x5xf32, #S0>
  return %y : tensor<5x5xf32, #S0>
}

// Rank 0 has all of the part: it keeps elements 0 and 1, and sends 2 and 3.
// CHECK-LABEL: func.func @part
// CHECK-DAG: %[[OWN:.*]] = dist.extent #dist.extents<table [2, 0] over #mesh>
// CHECK-DAG: %[[GOT:.*]] = dist.extent #dist.extents<table [0, 2] over #mesh>
// CHECK: dist.all_to_all over #tp {{.*}} split 0 extents [0, %[[OWN]]] concat 0 extents [%[[GOT]], 0] : tensor<?xf32>
// CHECK: aten.slice %arg0 dim 0 [0 : %[[OWN]] : 1]
func.func @part(%x: tensor<12xf32, #S0>) -> tensor<4xf32, #S0> {
  %y = aten.slice %x dim 0 [0 : 4 : 1] : (tensor<12xf32, #S0>) -> tensor<4xf32, #S0>
  return %y : tensor<4xf32, #S0>
}

// Half of the zeros are on each rank, beside elements that it has: nothing moves.
// CHECK-LABEL: func.func @padded
// CHECK-NOT: dist.all_to_all
// CHECK: dist.extent #dist.extents<table [1, 0] over #mesh>
// CHECK: dist.extent #dist.extents<table [0, 1] over #mesh>
// CHECK: aten.cat %{{.*}}, %arg0, %{{.*}} dim 0 : (tensor<?xf32>, tensor<6xf32>, tensor<?xf32>) -> tensor<7xf32>
func.func @padded(%x: tensor<12xf32, #S0>) -> tensor<14xf32, #S0> {
  %y = aten.constant_pad_nd %x [1, 1] : (tensor<12xf32, #S0>) -> tensor<14xf32, #S0>
  return %y : tensor<14xf32, #S0>
}

// The first of two is all on rank 0, the second on rank 1: both want all of the one tensor, which goes once.
// CHECK-LABEL: func.func @joined
// CHECK: dist.all_gather over #tp %arg0 dim 0
// CHECK-NOT: dist.all
// CHECK: return
func.func @joined(%x: tensor<12xf32, #S0>) -> tensor<24xf32, #S0> {
  %y = aten.cat %x, %x dim 0 : (tensor<12xf32, #S0>, tensor<12xf32, #S0>) -> tensor<24xf32, #S0>
  return %y : tensor<24xf32, #S0>
}

// Both operands in one exchange: rank 0 gets the first 3 elements of rank 1, and rank 1 the last of rank 0.
// CHECK-LABEL: func.func @joined_together
// CHECK: aten.cat %arg0, %arg1 dim 0 : (tensor<6xf32>, tensor<2xf32>) -> tensor<8xf32>
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @joined_together(%x: tensor<12xf32, #S0>, %y: tensor<4xf32, #S0>) -> tensor<16xf32, #S0> {
  %z = aten.cat %x, %y dim 0 : (tensor<12xf32, #S0>, tensor<4xf32, #S0>) -> tensor<16xf32, #S0>
  return %z : tensor<16xf32, #S0>
}

// Each rank's half is the other's, reversed.
// CHECK-LABEL: func.func @reversed
// CHECK: %[[OTHER:.*]] = dist.permute over #tp {{.*}} %arg0
// CHECK: aten.flip %[[OTHER]] [0]
// CHECK-NOT: dist.
// CHECK: return
func.func @reversed(%x: tensor<12xf32, #S0>) -> tensor<12xf32, #S0> {
  %y = aten.flip %x [0] : (tensor<12xf32, #S0>) -> tensor<12xf32, #S0>
  return %y : tensor<12xf32, #S0>
}

// Owners take their own of every third: rank 0 has 1 and 4 of x[1::3], rank 1 has 7 and 10.
// CHECK-LABEL: func.func @strided
// CHECK-NOT: dist.all
// CHECK: aten.slice %arg0 dim 0 [{{.*}} : {{.*}} : 3]
// CHECK: return
func.func @strided(%x: tensor<12xf32, #S0>) -> tensor<4xf32, #S0> {
  %y = aten.slice %x dim 0 [1 : 12 : 3] : (tensor<12xf32, #S0>) -> tensor<4xf32, #S0>
  return %y : tensor<4xf32, #S0>
}

// The first half is all on rank 0, the second on rank 1; both are shared out at once.
// CHECK-LABEL: func.func @cut
// CHECK: dist.all_to_all over #tp
// CHECK-NOT: dist.all
// CHECK: return
func.func @cut(%x: tensor<12xf32, #S0>) -> (tensor<6xf32, #S0>, tensor<6xf32, #S0>) {
  %y:2 = aten.split_with_sizes %x [6, 6] dim 0 : (tensor<12xf32, #S0>) -> (tensor<6xf32, #S0>, tensor<6xf32, #S0>)
  return %y#0, %y#1 : tensor<6xf32, #S0>, tensor<6xf32, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 2)]>
#P = #dist.layout<#mesh, [P(sum)]>

// All of them are reported in one run.
func.func @refused(%x: tensor<12xf32, #S0>, %b: tensor<12x4xf32, #blocks>) {
  // expected-error @+1 {{the position is on one rank only, so the result must be P(sum) over that axis}}
  %2 = aten.select %x dim 0 at 3 : (tensor<12xf32, #S0>) -> tensor<f32, #R>
  // expected-error @+1 {{dim 0 is sharded in blocks; replicate it before}}
  %3 = aten.select %b dim 0 at 3 : (tensor<12x4xf32, #blocks>) -> tensor<4xf32, #P>
  return
}
