// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

// The signature keeps what is global; names and kinds stay.
// CHECK-LABEL: func.func @row_parallel
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xf32> {dist.global_type = tensor<8x64xf32>, dist.layout = #{{.*}}, dist.name = "x"}
// CHECK-SAME: %[[W:.*]]: tensor<32x16xf32>
// CHECK-SAME: -> (tensor<8x32xf32> {dist.global_type = tensor<8x32xf32>, dist.layout = #{{.*}}})
// CHECK: %[[Y:.*]] = aten.linear %[[X]], %[[W]] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
// CHECK: %[[R:.*]] = dist.all_reduce sum over #tp %[[Y]] : tensor<8x32xf32>
// CHECK: return %[[R]]
func.func @row_parallel(%x: tensor<8x64xf32, #S1> {dist.name = "x"}, %w: tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R> {
  %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #P>
  %r = dist.redistribute %y : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
  return %r : tensor<8x32xf32, #R>
}

// A column-parallel linear needs nobody: 10 outputs over 4 ranks are 3, 3, 3, 1.
// CHECK-LABEL: func.func @column_parallel
// CHECK-NOT: dist.all
// CHECK: aten.linear {{.*}} : (tensor<8x64xf32>, tensor<?x64xf32>, tensor<?xf32>) -> tensor<8x?xf32>
func.func @column_parallel(%x: tensor<8x64xf32, #R>, %w: tensor<10x64xf32, #S0>, %b: tensor<10xf32, #S0>) -> tensor<8x10xf32, #S1> {
  %y = aten.linear %x, %w, %b : (tensor<8x64xf32, #R>, tensor<10x64xf32, #S0>, tensor<10xf32, #S0>) -> tensor<8x10xf32, #S1>
  return %y : tensor<8x10xf32, #S1>
}

// The bias counts once: rank 0 of the axis keeps it, the others add zero.
// CHECK-LABEL: func.func @bias_counts_once
// CHECK-SAME: %[[B:[^:]*]]: tensor<32xf32>
// CHECK-DAG: %[[ZERO:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[I:.*]] = dist.axis_index over #tp
// CHECK: %[[FIRST:.*]] = aten.eq
// CHECK: %[[KEPT:.*]] = aten.where %[[FIRST]], %[[B]], %[[ZERO]]
// CHECK: aten.addmm %[[KEPT]], %{{.*}}, %{{.*}} : (tensor<32xf32>, tensor<8x16xf32>, tensor<16x32xf32>)
func.func @bias_counts_once(%b: tensor<32xf32, #R>, %x: tensor<8x64xf32, #S1>, %w: tensor<64x32xf32, #S0>) -> tensor<8x32xf32, #P> {
  %p = dist.redistribute %b : tensor<32xf32, #R> to tensor<32xf32, #P>
  %y = aten.addmm %p, %x, %w : (tensor<32xf32, #P>, tensor<8x64xf32, #S1>, tensor<64x32xf32, #S0>) -> tensor<8x32xf32, #P>
  return %y : tensor<8x32xf32, #P>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

func.func @bias_counts_four_times(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>, %b: tensor<32xf32, #R>) -> tensor<8x32xf32, #P> {
  // expected-error @+1 {{cannot be localised: operands [S(1)], [S(1)], [R], results [P(sum)]: operand 2 would be added once for each rank of axis "tp"; redistribute it to P(sum)}}
  %y = aten.linear %x, %w, %b : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>, tensor<32xf32, #R>) -> tensor<8x32xf32, #P>
  return %y : tensor<8x32xf32, #P>
}
