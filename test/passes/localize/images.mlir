// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

// Column-wise, then row-wise: one reduction, and none for batch norm and pool between.
// CHECK-LABEL: func.func @pair
// CHECK: aten.conv2d {{.*}} : (tensor<2x3x8x8xf32>, tensor<3x3x3x3xf32>) -> tensor<2x3x8x8xf32>
// CHECK: aten.batch_norm {{.*}} : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>
// CHECK: aten.max_pool2d {{.*}} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
// CHECK: %[[P:.*]] = aten.conv2d {{.*}} : (tensor<2x3x4x4xf32>, tensor<5x3x1x1xf32>) -> tensor<2x5x4x4xf32>
// CHECK: dist.all_reduce sum over #tp %[[P]] : tensor<2x5x4x4xf32>
func.func @pair(%x: tensor<2x3x8x8xf32, #R>, %v: tensor<6x3x3x3xf32, #S0>, %w: tensor<5x6x1x1xf32, #S1>,
                %c: tensor<6xf32, #S0>) -> tensor<2x5x4x4xf32, #R> {
  %0 = aten.conv2d %x, %v stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<2x3x8x8xf32, #R>, tensor<6x3x3x3xf32, #S0>) -> tensor<2x6x8x8xf32, #S1>
  %1 = aten.batch_norm %0 mean(%c) variance(%c) eps 1.0e-5 : (tensor<2x6x8x8xf32, #S1>, tensor<6xf32, #S0>, tensor<6xf32, #S0>) -> tensor<2x6x8x8xf32, #S1>
  %2 = aten.max_pool2d %1 kernel [2] stride [2] padding [0] dilation [1] : (tensor<2x6x8x8xf32, #S1>) -> tensor<2x6x4x4xf32, #S1>
  %3 = aten.conv2d %2, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x6x4x4xf32, #S1>, tensor<5x6x1x1xf32, #S1>) -> tensor<2x5x4x4xf32, #P>
  %4 = dist.redistribute %3 : tensor<2x5x4x4xf32, #P> to tensor<2x5x4x4xf32, #R>
  return %4 : tensor<2x5x4x4xf32, #R>
}

// The groups of one rank.
// CHECK-LABEL: func.func @groups
// CHECK: aten.conv2d {{.*}} groups 2 : (tensor<2x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x6x6xf32>
func.func @groups(%x: tensor<2x8x8x8xf32, #S1>, %w: tensor<12x2x3x3xf32, #S0>) -> tensor<2x12x6x6xf32, #S1> {
  %0 = aten.conv2d %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 4 : (tensor<2x8x8x8xf32, #S1>, tensor<12x2x3x3xf32, #S0>) -> tensor<2x12x6x6xf32, #S1>
  return %0 : tensor<2x12x6x6xf32, #S1>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>

// Three groups on two ranks.
func.func @uneven_groups(%x: tensor<2x6x8x8xf32, #S1>, %w: tensor<6x2x3x3xf32, #S0>) -> tensor<2x6x6x6xf32, #S1> {
  // expected-error @+1 {{a group of channels would be on several ranks, or ranks would have different numbers of groups}}
  %0 = aten.conv2d %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 3 : (tensor<2x6x8x8xf32, #S1>, tensor<6x2x3x3xf32, #S0>) -> tensor<2x6x6x6xf32, #S1>
  return %0 : tensor<2x6x6x6xf32, #S1>
}
