// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#P = #dist.layout<#mesh, [P(sum)]>

// A sharded table: each rank adds what falls into its rows, and zero elsewhere. No rank needs another.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: dist.all
// CHECK: %[[OFFSET:.*]] = dist.extent #dist.extents<table [0, 4] over #mesh>
// CHECK: %[[MINE:.*]] = aten.bitwise_and
// CHECK: %[[AT:.*]] = aten.where %[[MINE]]
// CHECK: %[[MASK:.*]] = aten.unsqueeze %[[MINE]] dim 1
// CHECK: %[[V:.*]] = aten.where %[[MASK]], %arg2
// CHECK: aten.index_put %arg0[%[[AT]]] of %[[V]] accumulate {{.*}} : (tensor<4x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<4x3xf32>
func.func @rows(%x: tensor<8x3xf32, #S0>, %i: tensor<5xi64, #R>, %v: tensor<5x3xf32, #R>) -> tensor<8x3xf32, #S0> {
  %y = aten.index_put %x[%i] of %v accumulate : (tensor<8x3xf32, #S0>, tensor<5xi64, #R>, tensor<5x3xf32, #R>) -> tensor<8x3xf32, #S0>
  return %y : tensor<8x3xf32, #S0>
}

// Sharded positions: the sums are partial, and the tensor counts once.
// CHECK-LABEL: func.func @positions
// CHECK-NEXT: aten.scatter_add %arg0 dim 0 at %arg1 of %arg2 : (tensor<8x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<8x3xf32>
func.func @positions(%x: tensor<8x3xf32, #P>, %i: tensor<4x3xi64, #S0>, %v: tensor<4x3xf32, #S0>) -> tensor<8x3xf32, #P> {
  %y = aten.scatter_add %x dim 0 at %i of %v : (tensor<8x3xf32, #P>, tensor<4x3xi64, #S0>, tensor<4x3xf32, #S0>) -> tensor<8x3xf32, #P>
  return %y : tensor<8x3xf32, #P>
}

// Nothing is added where a rank only writes: it skips positions of other ranks, which are the size of its part.
// CHECK-LABEL: func.func @written
// CHECK-NOT: dist.all
// CHECK-DAG: %[[NONE:.*]] = aten.constant dense<4> : tensor<i64>
// CHECK: %[[AT:.*]] = aten.where %{{.*}}, %{{.*}}, %{{.*}}
// CHECK: aten.index_write %arg0 dims [0] at %{{.*}} of %arg2 skips {{.*}} : (tensor<4x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<4x3xf32>
func.func @written(%x: tensor<8x3xf32, #S0>, %i: tensor<5xi64, #R>, %v: tensor<5x3xf32, #R>) -> tensor<8x3xf32, #S0> {
  %y = aten.index_write %x dims [0] at %i of %v : (tensor<8x3xf32, #S0>, tensor<5xi64, #R>, tensor<5x3xf32, #R>) -> tensor<8x3xf32, #S0>
  return %y : tensor<8x3xf32, #S0>
}

// Of an extreme, ranks may have some positions each.
// CHECK-LABEL: func.func @extreme
// CHECK-NEXT: aten.scatter %arg0 dim 0 at %arg1 of %arg2 reduce "amax" : (tensor<8x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<8x3xf32>
func.func @extreme(%x: tensor<8x3xf32, #R>, %i: tensor<4x3xi64, #S0>, %v: tensor<4x3xf32, #S0>) -> tensor<8x3xf32, #dist.layout<#mesh, [P(max)]>> {
  %y = aten.scatter %x dim 0 at %i of %v reduce "amax" : (tensor<8x3xf32, #R>, tensor<4x3xi64, #S0>, tensor<4x3xf32, #S0>) -> tensor<8x3xf32, #dist.layout<#mesh, [P(max)]>>
  return %y : tensor<8x3xf32, #dist.layout<#mesh, [P(max)]>>
}

// The first of each rank are gathered, and the first of those are the result.
// CHECK-LABEL: func.func @first
// CHECK: %[[V:.*]], %[[I:.*]] = aten.sort %arg0 dim 0 descending count 2 : (tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
// CHECK-DAG: dist.all_gather over #tp %[[V]] dim 0 : (tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-DAG: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<2x3xi64>) -> tensor<4x3xi64>
// CHECK-DAG: aten.sort {{.*}} dim 0 descending count 2 : (tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
// CHECK: aten.gather
func.func @first(%x: tensor<8x3xf32, #S0>) -> (tensor<2x3xf32, #R>, tensor<2x3xi64, #R>) {
  %v, %i = aten.sort %x dim 0 descending count 2 : (tensor<8x3xf32, #S0>) -> (tensor<2x3xf32, #R>, tensor<2x3xi64, #R>)
  return %v, %i : tensor<2x3xf32, #R>, tensor<2x3xi64, #R>
}

// The summed dims stay apart, so that any of them may be sharded.
// CHECK-LABEL: func.func @product
// CHECK-NEXT: aten.tensordot %arg0, %arg1 dims [0, 1] [0, 1] : (tensor<4x3x2xf32>, tensor<4x3x5xf32>) -> tensor<2x5xf32>
func.func @product(%g: tensor<4x6x2xf32, #dist.layout<#mesh, [S(1)]>>, %x: tensor<4x6x5xf32, #dist.layout<#mesh, [S(1)]>>) -> tensor<2x5xf32, #P> {
  %y = aten.tensordot %g, %x dims [0, 1] [0, 1] : (tensor<4x6x2xf32, #dist.layout<#mesh, [S(1)]>>, tensor<4x6x5xf32, #dist.layout<#mesh, [S(1)]>>) -> tensor<2x5xf32, #P>
  return %y : tensor<2x5xf32, #P>
}
