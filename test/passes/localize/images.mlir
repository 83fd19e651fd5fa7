// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#S3 = #dist.layout<#mesh, [S(3)]>
#S4 = #dist.layout<#mesh, [S(4)]>
#P = #dist.layout<#mesh, [P(sum)]>
#S0groups = #dist.layout<#mesh, [S(0, sizes = [4, 2])]>
#S1groups = #dist.layout<#mesh, [S(1, sizes = [4, 2])]>

// Column-wise, then row-wise: one reduction, and none for batch norm and pool between.
// CHECK-LABEL: func.func @pair
// CHECK: aten.convolution {{.*}} : (tensor<2x3x8x8xf32>, tensor<3x3x3x3xf32>) -> tensor<2x3x8x8xf32>
// CHECK: aten.batch_norm {{.*}} : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>
// CHECK: aten.max_pool {{.*}} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
// CHECK: %[[P:.*]] = aten.convolution {{.*}} : (tensor<2x3x4x4xf32>, tensor<5x3x1x1xf32>) -> tensor<2x5x4x4xf32>
// CHECK: dist.all_reduce sum over #tp %[[P]] : tensor<2x5x4x4xf32>
func.func @pair(%x: tensor<2x3x8x8xf32, #R>, %v: tensor<6x3x3x3xf32, #S0>, %w: tensor<5x6x1x1xf32, #S1>,
                %c: tensor<6xf32, #S0>) -> tensor<2x5x4x4xf32, #R> {
  %0 = aten.convolution %x, %v stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<2x3x8x8xf32, #R>, tensor<6x3x3x3xf32, #S0>) -> tensor<2x6x8x8xf32, #S1>
  %1 = aten.batch_norm %0 mean(%c) variance(%c) eps 1.0e-5 : (tensor<2x6x8x8xf32, #S1>, tensor<6xf32, #S0>, tensor<6xf32, #S0>) -> tensor<2x6x8x8xf32, #S1>
  %2 = aten.max_pool %1 kernel [2, 2] stride [2] padding [0] dilation [1] : (tensor<2x6x8x8xf32, #S1>) -> tensor<2x6x4x4xf32, #S1>
  %3 = aten.convolution %2, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x6x4x4xf32, #S1>, tensor<5x6x1x1xf32, #S1>) -> tensor<2x5x4x4xf32, #P>
  %4 = dist.redistribute %3 : tensor<2x5x4x4xf32, #P> to tensor<2x5x4x4xf32, #R>
  return %4 : tensor<2x5x4x4xf32, #R>
}

// A border of the other end's columns comes with those that the window covers, in one exchange.
// CHECK-LABEL: func.func @circular
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: aten.max_pool
// CHECK: return
func.func @circular(%x: tensor<1x1x2x8xf32, #S3>) -> tensor<1x1x2x8xf32, #S3> {
  %0 = aten.slice %x dim 3 [7 : 8 : 1] : (tensor<1x1x2x8xf32, #S3>) -> tensor<1x1x2x1xf32, #S3>
  %1 = aten.slice %x dim 3 [0 : 1 : 1] : (tensor<1x1x2x8xf32, #S3>) -> tensor<1x1x2x1xf32, #S3>
  %2 = aten.cat %0, %x, %1 dim 3 : (tensor<1x1x2x1xf32, #S3>, tensor<1x1x2x8xf32, #S3>, tensor<1x1x2x1xf32, #S3>) -> tensor<1x1x2x10xf32, #S3>
  %3 = aten.max_pool %2 kernel [1, 3] stride [1] padding [0] dilation [1] : (tensor<1x1x2x10xf32, #S3>) -> tensor<1x1x2x8xf32, #S3>
  return %3 : tensor<1x1x2x8xf32, #S3>
}

// A transposed convolution to twice as many channels: each rank fetches the row beside its own, which is half of what the other
// would send for it.
// CHECK-LABEL: func.func @transposed
// CHECK: dist.all_to_all over #tp {{.*}} : tensor<6xf32>
// CHECK-NOT: dist.all
// CHECK: aten.fold %{{.*}} to [12, 3]
// CHECK-NOT: dist.all
// CHECK: return
func.func @transposed(%x: tensor<1x2x8x3xf32, #S2>, %w: tensor<2x4x4x1xf32, #R>) -> tensor<1x4x16x3xf32, #S2> {
  %0 = aten.tensordot %w, %x dims [0] [1] : (tensor<2x4x4x1xf32, #R>, tensor<1x2x8x3xf32, #S2>) -> tensor<4x4x1x1x8x3xf32, #S4>
  %1 = aten.permute %0 [3, 0, 1, 2, 4, 5] : (tensor<4x4x1x1x8x3xf32, #S4>) -> tensor<1x4x4x1x8x3xf32, #S4>
  %2 = aten.fold %1 to [16, 3] stride [2, 1] padding [1, 0] dilation [1, 1] : (tensor<1x4x4x1x8x3xf32, #S4>) -> tensor<1x4x16x3xf32, #S2>
  return %2 : tensor<1x4x16x3xf32, #S2>
}

// With fewer channels than the image has, what it makes is sent.
// CHECK-LABEL: func.func @transposed_to_fewer
// CHECK: aten.fold %{{.*}} to [6, 3]
// CHECK: dist.all_to_all over #tp {{.*}} : tensor<6xf32>
// CHECK: return
func.func @transposed_to_fewer(%x: tensor<1x8x8x3xf32, #S2>, %w: tensor<8x2x3x1xf32, #R>) -> tensor<1x2x8x3xf32, #S2> {
  %0 = aten.tensordot %w, %x dims [0] [1] : (tensor<8x2x3x1xf32, #R>, tensor<1x8x8x3xf32, #S2>) -> tensor<2x3x1x1x8x3xf32, #S4>
  %1 = aten.permute %0 [3, 0, 1, 2, 4, 5] : (tensor<2x3x1x1x8x3xf32, #S4>) -> tensor<1x2x3x1x8x3xf32, #S4>
  %2 = aten.fold %1 to [8, 3] stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x3x1x8x3xf32, #S4>) -> tensor<1x2x8x3xf32, #S2>
  return %2 : tensor<1x2x8x3xf32, #S2>
}

// Windows of several kinds over one image: what the widest covers comes once.
// CHECK-LABEL: func.func @two_windows
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @two_windows(%x: tensor<1x2x16x6xf32, #S2>, %v: tensor<3x2x3x1xf32, #R>, %w: tensor<3x2x5x1xf32, #R>) -> (tensor<1x3x16x6xf32, #S2>, tensor<1x3x16x6xf32, #S2>, tensor<1x2x8x6xf32, #S2>) {
  %0 = aten.convolution %x, %v stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x16x6xf32, #S2>, tensor<3x2x3x1xf32, #R>) -> tensor<1x3x16x6xf32, #S2>
  %1 = aten.convolution %x, %w stride [1, 1] padding [2, 0] dilation [1, 1] : (tensor<1x2x16x6xf32, #S2>, tensor<3x2x5x1xf32, #R>) -> tensor<1x3x16x6xf32, #S2>
  %2 = aten.max_pool %x kernel [3, 1] stride [2, 1] padding [1, 0] dilation [1] : (tensor<1x2x16x6xf32, #S2>) -> tensor<1x2x8x6xf32, #S2>
  return %0, %1, %2 : tensor<1x3x16x6xf32, #S2>, tensor<1x3x16x6xf32, #S2>, tensor<1x2x8x6xf32, #S2>
}

// The groups of one rank.
// CHECK-LABEL: func.func @groups
// CHECK: aten.convolution {{.*}} groups 2 : (tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x6x6xf32>
func.func @groups(%x: tensor<2x8x8x8xf32, #S1>, %w: tensor<12x2x3x3xf32, #S0>) -> tensor<2x12x6x6xf32, #S1> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 4 : (tensor<2x8x8x8xf32, #S1>, tensor<12x2x3x3xf32, #S0>) -> tensor<2x12x6x6xf32, #S1>
  return %0 : tensor<2x12x6x6xf32, #S1>
}

// Three groups on two ranks, two and one: the product of matrices that a convolution is, group by group.
// CHECK-LABEL: func.func @uneven_groups
// CHECK-DAG: %[[G:.*]] = dist.extent #dist.extents<table [2, 1] over #mesh>
// CHECK: %[[W:.*]] = aten.windows %arg0 {{.*}} -> tensor<2x?x3x3x6x6xf32>
// CHECK-DAG: aten.view %arg1 [%[[G]], 2, 18] : (tensor<?x2x3x3xf32>) -> tensor<?x2x18xf32>
// CHECK-DAG: aten.view %[[W]] [2, %[[G]], 18, 36]
// CHECK: aten.matmul {{.*}} -> tensor<2x?x2x36xf32>
// CHECK-NOT: dist.all
func.func @uneven_groups(%x: tensor<2x6x8x8xf32, #S1groups>, %w: tensor<6x2x3x3xf32, #S0groups>) -> tensor<2x6x6x6xf32, #S1groups> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 3 : (tensor<2x6x8x8xf32, #S1groups>, tensor<6x2x3x3xf32, #S0groups>) -> tensor<2x6x6x6xf32, #S1groups>
  return %0 : tensor<2x6x6x6xf32, #S1groups>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S1b = #dist.layout<#mesh, [S(1, blocks = 3)]>

func.func @parts_of_groups(%x: tensor<2x6x8x8xf32, #S1>, %w: tensor<6x2x3x3xf32, #S0>) -> (tensor<2x6x6x6xf32, #S1>, tensor<2x6x6x6xf32, #S1b>) {
  // expected-error @+1 {{the channels are cut inside groups and between them at once; shard whole groups (a granule of 2), or a part of every group (blocks = 3)}}
  %0 = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 3 : (tensor<2x6x8x8xf32, #S1>, tensor<6x2x3x3xf32, #S0>) -> tensor<2x6x6x6xf32, #S1>
  // expected-error @+1 {{a rank has a part of every group, and the op needs whole ones; shard whole groups, or replicate the channels before}}
  %1 = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 3 : (tensor<2x6x8x8xf32, #S1>, tensor<6x2x3x3xf32, #S0>) -> tensor<2x6x6x6xf32, #S1b>
  return %0, %1 : tensor<2x6x6x6xf32, #S1>, tensor<2x6x6x6xf32, #S1b>
}
