// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

// 1003 rows over four ranks are 251, 251, 251, 250: a rank looks up what it has and gives zero for the
// rest. No row of the table moves.
// CHECK-LABEL: func.func @vocabulary
// CHECK-SAME: %[[W:[^:]*]]: tensor<?x16xf32>
// CHECK-SAME: %[[I:[^:]*]]: tensor<3x5xi64>
// CHECK-DAG: %[[N:.*]] = dist.extent #dist.extents<1003 over #mesh ["tp"]>
// CHECK-DAG: %[[OFFSET:.*]] = dist.extent #dist.extents<table [0, 251, 502, 753] over #mesh>
// CHECK: %[[LOCAL:.*]] = aten.sub %[[I]], %{{.*}} : (tensor<3x5xi64>, tensor<i64>) -> tensor<3x5xi64>
// CHECK: %[[MASK:.*]] = aten.bitwise_and
// What other ranks hold is looked up in row 0; what no rank holds, where no row is, so that the lookup fails.
// CHECK: %[[FROM:.*]] = aten.ge %[[I]]
// CHECK: %[[TO:.*]] = aten.lt %[[I]]
// CHECK: %[[HELD:.*]] = aten.bitwise_and %[[FROM]], %[[TO]]
// CHECK: %[[ELSEWHERE:.*]] = aten.where %[[HELD]], %{{.*}}, %{{.*}}
// CHECK: %[[SAFE:.*]] = aten.where %[[MASK]], %[[LOCAL]], %[[ELSEWHERE]]
// CHECK: %[[ROWS:.*]] = aten.embedding %[[W]] at %[[SAFE]] {aten.lookup_sizes = array<i64: 1003>} : (tensor<?x16xf32>, tensor<3x5xi64>) -> tensor<3x5x16xf32>
// CHECK: %[[OUT:.*]] = aten.where %{{.*}}, %[[ROWS]], %{{.*}}
// CHECK: dist.all_reduce sum over #tp %[[OUT]] : tensor<3x5x16xf32>
// CHECK-NOT: dist.
func.func @vocabulary(%w: tensor<1003x16xf32, #S0>, %i: tensor<3x5xi64, #R>) -> tensor<3x5x16xf32, #R> {
  %y = aten.embedding %w at %i : (tensor<1003x16xf32, #S0>, tensor<3x5xi64, #R>) -> tensor<3x5x16xf32, #P>
  %r = dist.redistribute %y : tensor<3x5x16xf32, #P> to tensor<3x5x16xf32, #R>
  return %r : tensor<3x5x16xf32, #R>
}

// Five rows over four ranks leave the last without one: it looks into a row of zeros.
// CHECK-LABEL: func.func @empty_shard
// CHECK: %[[ROW:.*]] = aten.expand %{{.*}} [1, 16] : (tensor<f32>) -> tensor<1x16xf32>
// CHECK: %[[TABLE:.*]] = aten.cat %arg0, %[[ROW]] dim 0 : (tensor<?x16xf32>, tensor<1x16xf32>) -> tensor<?x16xf32>
// CHECK: aten.embedding %[[TABLE]] at
func.func @empty_shard(%w: tensor<5x16xf32, #S0>, %i: tensor<7xi64, #R>) -> tensor<7x16xf32, #P> {
  %y = aten.embedding %w at %i : (tensor<5x16xf32, #S0>, tensor<7xi64, #R>) -> tensor<7x16xf32, #P>
  return %y : tensor<7x16xf32, #P>
}

// Columns, and batches of indices, shard without a mask.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: aten.where
// CHECK: aten.embedding %arg0 at %arg1 : (tensor<1003x4xf32>, tensor<7xi64>) -> tensor<7x4xf32>
func.func @columns(%w: tensor<1003x16xf32, #S1>, %i: tensor<7xi64, #R>) -> tensor<7x16xf32, #S1> {
  %y = aten.embedding %w at %i : (tensor<1003x16xf32, #S1>, tensor<7xi64, #R>) -> tensor<7x16xf32, #S1>
  return %y : tensor<7x16xf32, #S1>
}

// Two indexed dims, the first one sharded; negative positions count from the end of the global dim.
// CHECK-LABEL: func.func @index
// CHECK: aten.lt %arg1
// CHECK: aten.index %arg0[%{{.*}}, %arg2] {aten.lookup_sizes = array<i64: 8, -9223372036854775808>} : (tensor<2x6x3xf32>, tensor<4x1xi64>, tensor<5xi64>) -> tensor<4x5x3xf32>
// CHECK: aten.where
func.func @index(%x: tensor<8x6x3xf32, #S0>, %i: tensor<4x1xi64, #R>, %j: tensor<5xi64, #R>) -> tensor<4x5x3xf32, #P> {
  %y = aten.index %x[%i, %j, :] : (tensor<8x6x3xf32, #S0>, tensor<4x1xi64, #R>, tensor<5xi64, #R>) -> tensor<4x5x3xf32, #P>
  return %y : tensor<4x5x3xf32, #P>
}

// Two dims of which a rank may hold nothing: the second row of zeros is as long as the table with the first.
// CHECK-LABEL: func.func @two_empty
// CHECK: %[[N:.*]] = dist.extent #dist.extents<1 over #mesh{{[0-9]*}} ["a"]>
// CHECK: %[[ROWS:.*]] = arith.addi %[[N]], %c1
// CHECK: %[[FIRST:.*]] = aten.cat %arg0, %{{.*}} dim 0 : (tensor<?x?x3xf32>, tensor<1x?x3xf32>) -> tensor<?x?x3xf32>
// CHECK: %[[ROW:.*]] = aten.expand %{{.*}} [%[[ROWS]], 1, 3]
// CHECK: aten.cat %[[FIRST]], %[[ROW]] dim 1
func.func @two_empty(%x: tensor<1x3x3xf32, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [S(0), S(1, sizes = [0, 3])]>>,
                     %i: tensor<4xi64, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [R, R]>>)
    -> tensor<4x3xf32, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [P(sum), P(sum)]>> {
  %y = aten.index %x[%i, %i, :] : (tensor<1x3x3xf32, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [S(0), S(1, sizes = [0, 3])]>>, tensor<4xi64, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [R, R]>>, tensor<4xi64, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [R, R]>>) -> tensor<4x3xf32, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [P(sum), P(sum)]>>
  return %y : tensor<4x3xf32, #dist.layout<#dist.mesh<["a" = 2, "b" = 2]>, [P(sum), P(sum)]>>
}

// -----

#sp = #dist.mesh<["sp" = 2]>
#R = #dist.layout<#sp, [R]>
#S0 = #dist.layout<#sp, [S(0)]>

// Two ranks have rows 0, 1 and 2, 3; the second one's part of both results is made of rows 1 to 3. One exchange brings it
// row 1, and both lookups count from there.
// CHECK-LABEL: func.func @ascending
// CHECK-DAG: %[[FIRST:.*]] = aten.constant dense<[0, 0, 0, 1, 0, 1, 1, 2]> : tensor<8xi64>
// CHECK-DAG: %[[SECOND:.*]] = aten.constant dense<[0, 0, 1, 1, 1, 1, 2, 2]> : tensor<8xi64>
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all_to_all
// CHECK: %[[ROWS:.*]] = aten.cat {{.*}} -> tensor<?x3xf32>
// CHECK-NOT: dist.all_to_all
// CHECK: %[[AT:.*]] = aten.slice %[[FIRST]] dim 0
// CHECK: aten.index_select %[[ROWS]] dim 0 at %[[AT]] : (tensor<?x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
// CHECK-NOT: dist.all_to_all
// CHECK: %[[NEXT:.*]] = aten.slice %[[SECOND]] dim 0
// CHECK: aten.index_select %[[ROWS]] dim 0 at %[[NEXT]]
func.func @ascending(%x: tensor<4x3xf32, #S0>) -> (tensor<8x3xf32, #S0>, tensor<8x3xf32, #S0>) {
  %i = aten.constant dense<[0, 0, 0, 1, 1, 2, 2, 3]> : tensor<8xi64> -> tensor<8xi64, #R>
  %j = aten.constant dense<[0, 0, 1, 1, 2, 2, 3, 3]> : tensor<8xi64> -> tensor<8xi64, #R>
  %y = aten.index_select %x dim 0 at %i : (tensor<4x3xf32, #S0>, tensor<8xi64, #R>) -> tensor<8x3xf32, #S0>
  %z = aten.index_select %x dim 0 at %j : (tensor<4x3xf32, #S0>, tensor<8xi64, #R>) -> tensor<8x3xf32, #S0>
  return %y, %z : tensor<8x3xf32, #S0>, tensor<8x3xf32, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 2)]>
#P = #dist.layout<#mesh, [P(sum)]>

func.func @refused(%w: tensor<16x4xf32, #S0>, %b: tensor<16x4xf32, #blocks>, %m: tensor<16xi1, #S0>, %i: tensor<3xi64, #R>) {
  // expected-error @+1 {{each element is found on one rank only, so the result must be P(sum) over the axis of the table}}
  %0 = aten.embedding %w at %i : (tensor<16x4xf32, #S0>, tensor<3xi64, #R>) -> tensor<3x4xf32, #R>
  // expected-error @+1 {{dim 0 is sharded in blocks; replicate it before}}
  %1 = aten.embedding %b at %i : (tensor<16x4xf32, #blocks>, tensor<3xi64, #R>) -> tensor<3x4xf32, #P>
  // expected-error @+1 {{the result must be P(max) over the axis of the table}}
  %2 = aten.index_select %m dim 0 at %i : (tensor<16xi1, #S0>, tensor<3xi64, #R>) -> tensor<3xi1, #P>
  return
}
