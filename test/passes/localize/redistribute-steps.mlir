// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

// What each single step of redistribution becomes.

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>
#Pmax = #dist.layout<#mesh, [P(max)]>
#sizes = #dist.layout<#mesh, [S(0, sizes = [5, 3, 0, 2])]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 3)]>

// CHECK-LABEL: func.func @reduce
// CHECK-NEXT: dist.all_reduce max over #tp %arg0 : tensor<8x4xf32>
func.func @reduce(%x: tensor<8x4xf32, #Pmax>) -> tensor<8x4xf32, #R> {
  %y = dist.redistribute %x : tensor<8x4xf32, #Pmax> to tensor<8x4xf32, #R>
  return %y : tensor<8x4xf32, #R>
}

// CHECK-LABEL: func.func @reduce_scatter
// CHECK-NEXT: dist.reduce_scatter sum over #tp %arg0 dim 0 : (tensor<8x4xf32>) -> tensor<2x4xf32>
func.func @reduce_scatter(%x: tensor<8x4xf32, #P>) -> tensor<8x4xf32, #S0> {
  %y = dist.redistribute %x : tensor<8x4xf32, #P> to tensor<8x4xf32, #S0>
  return %y : tensor<8x4xf32, #S0>
}

// CHECK-LABEL: func.func @reduce_scatter_by_sizes
// CHECK-NEXT: dist.reduce_scatter sum over #tp %arg0 dim 0 extents [5, 3, 0, 2] : (tensor<10x4xf32>) -> tensor<?x4xf32>
func.func @reduce_scatter_by_sizes(%x: tensor<10x4xf32, #P>) -> tensor<10x4xf32, #sizes> {
  %y = dist.redistribute %x : tensor<10x4xf32, #P> to tensor<10x4xf32, #sizes>
  return %y : tensor<10x4xf32, #sizes>
}

// Chunks need no list, even or not: 10 over four is 3, 3, 3, 1.
// CHECK-LABEL: func.func @gather
// CHECK-NEXT: dist.all_gather over #tp %arg0 dim 0 : (tensor<?x4xf32>) -> tensor<10x4xf32>
func.func @gather(%x: tensor<10x4xf32, #S0>) -> tensor<10x4xf32, #R> {
  %y = dist.redistribute %x : tensor<10x4xf32, #S0> to tensor<10x4xf32, #R>
  return %y : tensor<10x4xf32, #R>
}

// CHECK-LABEL: func.func @gather_by_sizes
// CHECK-NEXT: dist.all_gather over #tp %arg0 dim 0 extents [5, 3, 0, 2] : (tensor<?x4xf32>) -> tensor<10x4xf32>
func.func @gather_by_sizes(%x: tensor<10x4xf32, #sizes>) -> tensor<10x4xf32, #R> {
  %y = dist.redistribute %x : tensor<10x4xf32, #sizes> to tensor<10x4xf32, #R>
  return %y : tensor<10x4xf32, #R>
}

// Blocks are a dim of their own while they are gathered.
// CHECK-LABEL: func.func @gather_blocks
// CHECK-NEXT: %[[OPEN:.*]] = aten.view %arg0 [3, 2, 4] : (tensor<6x4xf32>) -> tensor<3x2x4xf32>
// CHECK-NEXT: %[[ALL:.*]] = dist.all_gather over #tp %[[OPEN]] dim 1 : (tensor<3x2x4xf32>) -> tensor<3x8x4xf32>
// CHECK-NEXT: aten.view %[[ALL]] [24, 4] : (tensor<3x8x4xf32>) -> tensor<24x4xf32>
func.func @gather_blocks(%x: tensor<24x4xf32, #blocks>) -> tensor<24x4xf32, #R> {
  %y = dist.redistribute %x : tensor<24x4xf32, #blocks> to tensor<24x4xf32, #R>
  return %y : tensor<24x4xf32, #R>
}

// CHECK-LABEL: func.func @exchange
// CHECK-NEXT: dist.all_to_all over #tp %arg0 split 1 concat 0 : (tensor<2x8xf32>) -> tensor<8x2xf32>
func.func @exchange(%x: tensor<8x8xf32, #S0>) -> tensor<8x8xf32, #S1> {
  %y = dist.redistribute %x : tensor<8x8xf32, #S0> to tensor<8x8xf32, #S1>
  return %y : tensor<8x8xf32, #S1>
}

// CHECK-LABEL: func.func @exchange_blocks
// CHECK: aten.view %arg0 [3, 2, 8] : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
// CHECK: dist.all_to_all over #tp %{{.*}} split 2 concat 1 : (tensor<3x2x8xf32>) -> tensor<3x8x2xf32>
// CHECK: aten.view %{{.*}} [24, 2] : (tensor<3x8x2xf32>) -> tensor<24x2xf32>
func.func @exchange_blocks(%x: tensor<24x8xf32, #blocks>) -> tensor<24x8xf32, #S1> {
  %y = dist.redistribute %x : tensor<24x8xf32, #blocks> to tensor<24x8xf32, #S1>
  return %y : tensor<24x8xf32, #S1>
}

// CHECK-LABEL: func.func @take_own
// CHECK: %[[AT:.*]] = dist.extent #dist.extents<table [0, 3, 6, 9] over #mesh>
// CHECK: %[[END:.*]] = dist.extent #dist.extents<table [3, 6, 9, 10] over #mesh>
// CHECK: aten.slice %arg0 dim 0 [%[[AT]] : %[[END]] : 1] : (tensor<10x4xf32>) -> tensor<?x4xf32>
func.func @take_own(%x: tensor<10x4xf32, #R>) -> tensor<10x4xf32, #S0> {
  %y = dist.redistribute %x : tensor<10x4xf32, #R> to tensor<10x4xf32, #S0>
  return %y : tensor<10x4xf32, #S0>
}

// A rank chooses between the value and zero; it does not multiply.
// CHECK-LABEL: func.func @to_partial
// CHECK: dist.axis_index over #tp
// CHECK-NOT: aten.mul
// CHECK: aten.where %{{.*}}, %arg0, %{{.*}} : (tensor<i1>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
func.func @to_partial(%x: tensor<10x4xf32, #R>) -> tensor<10x4xf32, #P> {
  %y = dist.redistribute %x : tensor<10x4xf32, #R> to tensor<10x4xf32, #P>
  return %y : tensor<10x4xf32, #P>
}

// CHECK-LABEL: func.func @to_partial_maximum
// CHECK-NEXT: return %arg0
func.func @to_partial_maximum(%x: tensor<10x4xf32, #R>) -> tensor<10x4xf32, #Pmax> {
  %y = dist.redistribute %x : tensor<10x4xf32, #R> to tensor<10x4xf32, #Pmax>
  return %y : tensor<10x4xf32, #Pmax>
}

// CHECK-LABEL: func.func @zero_fill
// CHECK: aten.cat %{{.*}}, %arg0, %{{.*}} dim 0 : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<?x4xf32>) -> tensor<8x4xf32>
func.func @zero_fill(%x: tensor<8x4xf32, #S0>) -> tensor<8x4xf32, #P> {
  %y = dist.redistribute %x : tensor<8x4xf32, #S0> to tensor<8x4xf32, #P>
  return %y : tensor<8x4xf32, #P>
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#RR = #dist.layout<#mesh, [R, R]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#S0R = #dist.layout<#mesh, [S(0), R]>
#S00 = #dist.layout<#mesh, [S(0), S(0)]>

// Both axes at once.
// CHECK-LABEL: func.func @reduce_both
// CHECK-NEXT: dist.all_reduce sum over #dp_tp %arg0 : tensor<5x3xf32>
func.func @reduce_both(%x: tensor<5x3xf32, #PP>) -> tensor<5x3xf32, #RR> {
  %y = dist.redistribute %x : tensor<5x3xf32, #PP> to tensor<5x3xf32, #RR>
  return %y : tensor<5x3xf32, #RR>
}

// Five rows split over dp are 3 and 2, and those over tp are 2, 1 and 1, 1 (L3a): chunks of what dp
// left, so no list is needed, but how much that is differs.
// CHECK-LABEL: func.func @gather_inner
// CHECK: %[[N:.*]] = dist.extent #dist.extents<5 over #mesh ["dp"]>
// CHECK: dist.all_gather over #tp %arg0 dim 0 full %[[N]] : tensor<?x3xf32>
func.func @gather_inner(%x: tensor<5x3xf32, #S00>) -> tensor<5x3xf32, #S0R> {
  %y = dist.redistribute %x : tensor<5x3xf32, #S00> to tensor<5x3xf32, #S0R>
  return %y : tensor<5x3xf32, #S0R>
}

// Over both at once they are no chunks of the flattened group.
// CHECK-LABEL: func.func @gather_both
// CHECK: dist.all_gather over #dp_tp %arg0 dim 0 extents [2, 1, 1, 1] : (tensor<?x3xf32>) -> tensor<5x3xf32>
func.func @gather_both(%x: tensor<5x3xf32, #S00>) -> tensor<5x3xf32, #RR> {
  %y = dist.redistribute %x : tensor<5x3xf32, #S00> to tensor<5x3xf32, #RR>
  return %y : tensor<5x3xf32, #RR>
}

// CHECK-LABEL: func.func @scatter_both
// CHECK-NEXT: dist.reduce_scatter sum over #dp_tp %arg0 dim 0 extents [2, 1, 1, 1] : (tensor<5x3xf32>) -> tensor<?x3xf32>
func.func @scatter_both(%x: tensor<5x3xf32, #PP>) -> tensor<5x3xf32, #S00> {
  %y = dist.redistribute %x : tensor<5x3xf32, #PP> to tensor<5x3xf32, #S00>
  return %y : tensor<5x3xf32, #S00>
}
