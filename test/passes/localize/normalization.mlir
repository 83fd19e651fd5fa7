// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>

// Two passes: the mean, then the squares of what is left. Ten columns over four ranks, divided by ten.
// CHECK-LABEL: func.func @layer_norm
// CHECK-DAG: %[[TEN:.*]] = aten.constant dense<1.000000e+01> : tensor<f32>
// CHECK-DAG: %[[EPS:.*]] = aten.constant dense<9.99999974E-6> : tensor<f32>
// CHECK: %[[SUM:.*]] = aten.sum %arg0 dim [1] keepdim to f32 : (tensor<8x?xf32>) -> tensor<8x1xf32>
// CHECK: %[[ALL:.*]] = dist.all_reduce sum over #tp %[[SUM]] : tensor<8x1xf32>
// CHECK: %[[MEAN:.*]] = aten.div %[[ALL]], %[[TEN]]
// CHECK: %[[C:.*]] = aten.sub %arg0, %[[MEAN]]
// CHECK: %[[SQ:.*]] = aten.mul %[[C]], %[[C]]
// CHECK: %[[SQSUM:.*]] = aten.sum %[[SQ]] dim [1] keepdim
// CHECK: %[[SQALL:.*]] = dist.all_reduce sum over #tp %[[SQSUM]] : tensor<8x1xf32>
// CHECK: %[[VAR:.*]] = aten.div %[[SQALL]], %[[TEN]]
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
  // expected-error @+1 {{a group of channels would be on several ranks, or ranks would have different numbers of groups; replicate the channels before}}
  %y = aten.group_norm %x groups 2 : (tensor<3x16x5xf32, #S1>) -> tensor<3x16x5xf32, #S1>
  return %y : tensor<3x16x5xf32, #S1>
}
