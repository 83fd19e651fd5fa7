// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 3]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#P = #dist.layout<#mesh, [P(sum)]>

// Four matrices over three ranks are 2, 2, 0: indices count from the first of the rank, which has a share of the work.
// CHECK-LABEL: func.func @matrices
// CHECK-DAG: %[[OFFSET:.*]] = dist.extent #dist.extents<table [0, 2, 4] over #mesh>
// CHECK: %[[MINE:.*]] = aten.sub %arg2, %{{.*}} : (tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
// CHECK: aten.indexed_mm %arg0, %arg1 at %[[MINE]] {all_matrices = 4 : i64} : (tensor<6x8xf32>, tensor<?x8x9xf32>, tensor<6xi64>) -> tensor<6x9xf32>
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: return
func.func @matrices(%x: tensor<6x8xf32, #R>, %w: tensor<4x8x9xf32, #S0>, %i: tensor<6xi64, #R>) -> tensor<6x9xf32, #P> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x9xf32, #S0>, tensor<6xi64, #R>) -> tensor<6x9xf32, #P>
  return %y : tensor<6x9xf32, #P>
}

// Rows, columns and what is contracted: the same op.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %[[Y:.*]] = aten.indexed_mm %arg0, %arg1 at %arg2 sorted : (tensor<2x8xf32>, tensor<4x8x9xf32>, tensor<2xi64>) -> tensor<2x9xf32>
// CHECK-NEXT: return %[[Y]]
func.func @rows(%x: tensor<6x8xf32, #S0>, %w: tensor<4x8x9xf32, #R>, %i: tensor<6xi64, #S0>) -> tensor<6x9xf32, #S0> {
  %y = aten.indexed_mm %x, %w at %i sorted : (tensor<6x8xf32, #S0>, tensor<4x8x9xf32, #R>, tensor<6xi64, #S0>) -> tensor<6x9xf32, #S0>
  return %y : tensor<6x9xf32, #S0>
}
// CHECK-LABEL: func.func @columns
// CHECK-NEXT: aten.indexed_mm %arg0, %arg1 at %arg2 : (tensor<6x8xf32>, tensor<4x8x3xf32>, tensor<6xi64>) -> tensor<6x3xf32>
func.func @columns(%x: tensor<6x8xf32, #R>, %w: tensor<4x8x9xf32, #S2>, %i: tensor<6xi64, #R>) -> tensor<6x9xf32, #S1> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x9xf32, #S2>, tensor<6xi64, #R>) -> tensor<6x9xf32, #S1>
  return %y : tensor<6x9xf32, #S1>
}
// CHECK-LABEL: func.func @contracted
// CHECK-NEXT: aten.indexed_mm %arg0, %arg1 at %arg2 : (tensor<6x3xf32>, tensor<4x3x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
func.func @contracted(%x: tensor<6x9xf32, #S1>, %w: tensor<4x9x8xf32, #S1>, %i: tensor<6xi64, #R>) -> tensor<6x8xf32, #P> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x9xf32, #S1>, tensor<4x9x8xf32, #S1>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}

// Sums: of a rank's own matrices; of a part of the rows, a partial sum of all.
// CHECK-LABEL: func.func @sums
// CHECK: %[[MINE:.*]] = aten.sub %arg2
// CHECK: aten.indexed_outer %arg0, %arg1 at %[[MINE]] groups [%{{.*}}] {all_matrices = 4 : i64} : (tensor<6x8xf32>, tensor<6x9xf32>, tensor<6xi64>, index) -> tensor<?x8x9xf32>
func.func @sums(%x: tensor<6x8xf32, #R>, %y: tensor<6x9xf32, #R>, %i: tensor<6xi64, #R>) -> tensor<4x8x9xf32, #S0> {
  %g = aten.indexed_outer %x, %y at %i groups [4] : (tensor<6x8xf32, #R>, tensor<6x9xf32, #R>, tensor<6xi64, #R>) -> tensor<4x8x9xf32, #S0>
  return %g : tensor<4x8x9xf32, #S0>
}
// CHECK-LABEL: func.func @sums_of_rows
// CHECK-NEXT: aten.indexed_outer %arg0, %arg1 at %arg2 groups [4] : (tensor<2x8xf32>, tensor<2x9xf32>, tensor<2xi64>) -> tensor<4x8x9xf32>
func.func @sums_of_rows(%x: tensor<6x8xf32, #S0>, %y: tensor<6x9xf32, #S0>, %i: tensor<6xi64, #S0>) -> tensor<4x8x9xf32, #P> {
  %g = aten.indexed_outer %x, %y at %i groups [4] : (tensor<6x8xf32, #S0>, tensor<6x9xf32, #S0>, tensor<6xi64, #S0>) -> tensor<4x8x9xf32, #P>
  return %g : tensor<4x8x9xf32, #P>
}
