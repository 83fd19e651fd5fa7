// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#S1groups = #dist.layout<#mesh, [S(1, sizes = [3, 3, 0, 0])]>
#S0groups = #dist.layout<#mesh, [S(0, sizes = [3, 3, 0, 0])]>
#S1blocks = #dist.layout<#mesh, [S(1, blocks = 2)]>

// Two passes: the mean, then the squares of what is left. Ten columns over four ranks, divided by ten.
// CHECK-LABEL: func.func @layer_norm
// CHECK-DAG: %[[TEN:.*]] = aten.constant dense<1.000000e+01> : tensor<f32>
// CHECK-DAG: %[[EPS:.*]] = aten.constant dense<9.99999974E-6> : tensor<f32>
// CHECK: %[[SUM:.*]] = aten.sum %arg0 dim [1] keepdim to f32 : (tensor<8x?xf32>) -> tensor<8x1xf32>
// CHECK: %[[OWN:.*]] = aten.div %[[SUM]], %[[TEN]]
// CHECK: %[[MEAN:.*]] = dist.all_reduce sum over #tp %[[OWN]] : tensor<8x1xf32>
// CHECK: %[[C:.*]] = aten.sub %arg0, %[[MEAN]]
// CHECK: %[[SQ:.*]] = aten.mul %[[C]], %[[C]]
// CHECK: %[[SQSUM:.*]] = aten.sum %[[SQ]] dim [1] keepdim
// CHECK: %[[SQOWN:.*]] = aten.div %[[SQSUM]], %[[TEN]]
// CHECK: %[[VAR:.*]] = dist.all_reduce sum over #tp %[[SQOWN]] : tensor<8x1xf32>
// CHECK: aten.add %[[VAR]], %[[EPS]]
// CHECK: aten.rsqrt
// CHECK: aten.mul %{{.*}}, %arg1 : (tensor<8x?xf32>, tensor<?xf32>) -> tensor<8x?xf32>
// CHECK: aten.add %{{.*}}, %arg2
// CHECK-NOT: dist.all
func.func @layer_norm(%x: tensor<8x10xf32, #S1>, %w: tensor<10xf32, #S0>, %b: tensor<10xf32, #S0>) -> tensor<8x10xf32, #S1> {
  %y = aten.layer_norm %x [10] weight(%w) bias(%b) {eps = 1.0e-5 : f64} : (tensor<8x10xf32, #S1>, tensor<10xf32, #S0>, tensor<10xf32, #S0>) -> tensor<8x10xf32, #S1>
  return %y : tensor<8x10xf32, #S1>
}

// Without eps: the step above 1 of the input's type, 2^-23 for f32.
// CHECK-LABEL: func.func @rms_norm
// CHECK-DAG: aten.constant dense<1.1920929E-7> : tensor<f32>
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<8x1xf32>
// CHECK-NOT: dist.all
// CHECK: aten.rsqrt
func.func @rms_norm(%x: tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1> {
  %y = aten.rms_norm %x [10] : (tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1>
  return %y : tensor<8x10xf32, #S1>
}

// CHECK-LABEL: func.func @rows_need_nobody
// CHECK-NEXT: aten.layer_norm %arg0 [10] : (tensor<2x10xf32>) -> tensor<2x10xf32>
// CHECK-NEXT: return
func.func @rows_need_nobody(%x: tensor<8x10xf32, #S0>) -> tensor<8x10xf32, #S0> {
  %y = aten.layer_norm %x [10] : (tensor<8x10xf32, #S0>) -> tensor<8x10xf32, #S0>
  return %y : tensor<8x10xf32, #S0>
}

// Whole groups of channels shard: eight groups are two on each rank.
// CHECK-LABEL: func.func @group_norm
// CHECK: aten.group_norm %arg0 groups 2 : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
func.func @group_norm(%x: tensor<3x16x5xf32, #S1>) -> tensor<3x16x5xf32, #S1> {
  %y = aten.group_norm %x groups 8 : (tensor<3x16x5xf32, #S1>) -> tensor<3x16x5xf32, #S1>
  return %y : tensor<3x16x5xf32, #S1>
}

// Two groups on four ranks: one, one, none, none; nothing is exchanged.
// CHECK-LABEL: func.func @more_ranks_than_groups
// CHECK-DAG: %[[G:.*]] = dist.extent #dist.extents<table [1, 1, 0, 0] over #mesh>
// CHECK-DAG: %[[C:.*]] = dist.extent #dist.extents<6 over #mesh ["tp"(sizes = [3, 3, 0, 0])]>
// CHECK: aten.view %arg0 [3, %[[G]], 3, 5] : (tensor<3x?x5xf32>) -> tensor<3x?x3x5xf32>
// CHECK-NOT: dist.all
// CHECK: aten.view %{{.*}} [3, %[[C]], 5] : (tensor<3x?x3x5xf32>) -> tensor<3x?x5xf32>
// CHECK: aten.view %arg1 [%[[C]], 1] : (tensor<?xf32>) -> tensor<?x1xf32>
func.func @more_ranks_than_groups(%x: tensor<3x6x5xf32, #S1groups>, %w: tensor<6xf32, #S0groups>) -> tensor<3x6x5xf32, #S1groups> {
  %y = aten.group_norm %x groups 2 weight(%w) : (tensor<3x6x5xf32, #S1groups>, tensor<6xf32, #S0groups>) -> tensor<3x6x5xf32, #S1groups>
  return %y : tensor<3x6x5xf32, #S1groups>
}

// A part of every group on each rank: two sums are reduced, and divided by 8 channels times 5 positions.
// CHECK-LABEL: func.func @part_of_every_group
// CHECK: aten.constant dense<4.000000e+01>
// CHECK: aten.view %arg0 [3, 2, 2, 5] : (tensor<3x4x5xf32>) -> tensor<3x2x2x5xf32>
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x2x1x1xf32>
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x2x1x1xf32>
// CHECK-NOT: dist.all
func.func @part_of_every_group(%x: tensor<3x16x5xf32, #S1blocks>) -> tensor<3x16x5xf32, #S1blocks> {
  %y = aten.group_norm %x groups 2 : (tensor<3x16x5xf32, #S1blocks>) -> tensor<3x16x5xf32, #S1blocks>
  return %y : tensor<3x16x5xf32, #S1blocks>
}

// CHECK-LABEL: func.func @part_of_the_positions
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x2x1x1xf32>
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x2x1x1xf32>
// CHECK-NOT: dist.all
func.func @part_of_the_positions(%x: tensor<3x6x5xf32, #S2>) -> tensor<3x6x5xf32, #S2> {
  %y = aten.group_norm %x groups 2 : (tensor<3x6x5xf32, #S2>) -> tensor<3x6x5xf32, #S2>
  return %y : tensor<3x6x5xf32, #S2>
}

// CHECK-LABEL: func.func @variance
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<8x1xf32>
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<8xf32>
// CHECK: aten.maximum
func.func @variance(%x: tensor<8x10xf32, #S1>) -> tensor<8xf32, #R> {
  %y = aten.var %x dim [1] : (tensor<8x10xf32, #S1>) -> tensor<8xf32, #R>
  return %y : tensor<8xf32, #R>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#S1 = #dist.layout<#mesh, [S(1)]>

func.func @half_a_group(%x: tensor<3x16x5xf32, #S1>) -> tensor<3x16x5xf32, #S1> {
  // expected-error @+1 {{the channels are cut inside groups and between them at once; shard whole groups (a granule of 8), or a part of every group (blocks = 2)}}
  %y = aten.group_norm %x groups 2 : (tensor<3x16x5xf32, #S1>) -> tensor<3x16x5xf32, #S1>
  return %y : tensor<3x16x5xf32, #S1>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S1 = #dist.layout<#mesh, [S(1)]>

func.func @symbolic_channels(%x: tensor<3x?xf32, #S1> {dist.sizes = [#dist.size<3>, #dist.size<c>]}) -> tensor<3x?xf32, #S1>
    attributes {dist.symbols = [#dist.symbol<c in [2, 64]>]} {
  // expected-error @+1 {{channels of a symbolic size are sharded; replicate them before, or export the model with a fixed number of channels}}
  %y = aten.group_norm %x groups 2 : (tensor<3x?xf32, #S1>) -> tensor<3x?xf32, #S1>
  return %y : tensor<3x?xf32, #S1>
}
