// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-chunk-collectives=chunks=2 %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-chunk-collectives=chunks=2 %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-chunk-collectives=chunks=4 %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-chunk-collectives=chunks=3 %}
// The pieces are scheduled one by one.
// RUN: shard-opt --dist-chunk-collectives=chunks=2 --dist-schedule-collectives=memory-limit=1GB %s | FileCheck --check-prefix=SCHEDULED %s
// RUN: shard-opt --dist-chunk-collectives=chunks=2 --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// RUN: shard-opt --dist-chunk-collectives=chunks=off %s | FileCheck --check-prefix=OFF %s
// OFF-NOT: aten.cat

// STATS-DAG: 6 gathers
// STATS-DAG: 5 reduces
// STATS-DAG: 11 products
// STATS-DAG: 9 regions

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>

// Each piece has rows of every rank's share, so that the pieces of the result are interleaved.
// CHECK-LABEL: func.func @gather(
// CHECK: %[[X0:.*]] = aten.slice %arg0 dim 0 [0 : 2 : 1]
// CHECK: %[[G0:.*]] = dist.all_gather over #tp %[[X0]] dim 0 : (tensor<2x16xf32>) -> tensor<8x16xf32>
// CHECK: %[[Y0:.*]] = aten.linear %[[G0]], %arg1, %arg2
// CHECK: %[[X1:.*]] = aten.slice %arg0 dim 0 [2 : 4 : 1]
// CHECK: %[[G1:.*]] = dist.all_gather over #tp %[[X1]] dim 0
// CHECK: %[[Y1:.*]] = aten.linear %[[G1]], %arg1, %arg2
// CHECK: %[[V0:.*]] = aten.view %[[Y0]] [4, 2, 8]
// CHECK: %[[V1:.*]] = aten.view %[[Y1]] [4, 2, 8]
// CHECK: aten.cat %[[V0]], %[[V1]] dim 1
// SCHEDULED-LABEL: func.func @gather(
// SCHEDULED: dist.all_gather
// SCHEDULED: dist.all_gather
// SCHEDULED: dist.wait
func.func @gather(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %b: tensor<8xf32>) -> tensor<16x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %y = aten.linear %g, %w, %b : (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// A piece of the product has rows for every rank, which the scatter gives them.
// CHECK-LABEL: func.func @scatter(
// CHECK: %[[B:.*]] = aten.view %arg0 [4, 4, 4]
// CHECK: %[[S:.*]] = aten.slice %[[B]] dim 1 [0 : 2 : 1]
// CHECK: %[[X:.*]] = aten.view %[[S]] [8, 4]
// CHECK: %[[Y:.*]] = aten.linear %[[X]], %arg1
// CHECK: %[[R0:.*]] = dist.reduce_scatter sum over #tp %[[Y]] dim 0 : (tensor<8x8xf32>) -> tensor<2x8xf32>
// CHECK: %[[R1:.*]] = dist.reduce_scatter
// CHECK: aten.cat %[[R0]], %[[R1]] dim 0
func.func @scatter(%x: tensor<16x4xf32>, %w: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %y = aten.linear %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %s = dist.reduce_scatter sum over #tp %y dim 0 : (tensor<16x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// From the gather to the scatter and beyond nothing is put together but what is read elsewhere.
// CHECK-LABEL: func.func @mlp(
// CHECK: dist.all_gather {{.*}} : (tensor<3x2x16xf32>) -> tensor<3x8x16xf32>
// CHECK: dist.reduce_scatter {{.*}} : (tensor<3x8x16xf32>) -> tensor<3x2x16xf32>
// CHECK: aten.add
// CHECK: dist.all_gather
// CHECK-COUNT-2: aten.cat
// CHECK-NOT: aten.cat
// CHECK: return
func.func @mlp(%x: tensor<3x4x16xf32>, %gate: tensor<8x16xf32>, %up: tensor<8x16xf32>, %down: tensor<16x8xf32>)
    -> (tensor<3x4x16xf32>, tensor<3x16x8xf32>) {
  %g = dist.all_gather over #tp %x dim 1 : (tensor<3x4x16xf32>) -> tensor<3x16x16xf32>
  %a = aten.linear %g, %gate : (tensor<3x16x16xf32>, tensor<8x16xf32>) -> tensor<3x16x8xf32>
  %s = aten.silu %a : (tensor<3x16x8xf32>) -> tensor<3x16x8xf32>
  %b = aten.linear %g, %up : (tensor<3x16x16xf32>, tensor<8x16xf32>) -> tensor<3x16x8xf32>
  %m = aten.mul %s, %b : (tensor<3x16x8xf32>, tensor<3x16x8xf32>) -> tensor<3x16x8xf32>
  %y = aten.linear %m, %down : (tensor<3x16x8xf32>, tensor<16x8xf32>) -> tensor<3x16x16xf32>
  %r = dist.reduce_scatter sum over #tp %y dim 1 : (tensor<3x16x16xf32>) -> tensor<3x4x16xf32>
  %z = aten.add %x, %r : (tensor<3x4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %z, %a : tensor<3x4x16xf32>, tensor<3x16x8xf32>
}

// CHECK-LABEL: func.func @all_reduce(
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x8xf32>
// CHECK: aten.gelu %{{.*}} : (tensor<3x8xf32>)
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<3x8xf32>
func.func @all_reduce(%x: tensor<6x4xf32>, %w: tensor<8x4xf32>) -> tensor<6x8xf32> {
  %y = aten.linear %x, %w : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %s = dist.all_reduce sum over #tp %y : tensor<6x8xf32>
  %t = aten.gelu %s : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return %t : tensor<6x8xf32>
}

// Dims that a view has merged: rows in the middle of a dim, and blocks of them.
// CHECK-LABEL: func.func @merged(
// CHECK: aten.slice %arg0 dim 1 [0 : 2 : 1] : (tensor<3x4x16xf32>)
// CHECK: aten.mm {{.*}} : (tensor<24x16xf32>, tensor<16x8xf32>) -> tensor<24x8xf32>
// CHECK: aten.mm {{.*}} : (tensor<24x16xf32>, tensor<16x8xf32>) -> tensor<24x8xf32>
// CHECK: aten.view {{.*}} [12, 2, 8]
func.func @merged(%x: tensor<3x4x16xf32>, %w: tensor<16x8xf32>) -> tensor<48x8xf32> {
  %g = dist.all_gather over #tp %x dim 1 : (tensor<3x4x16xf32>) -> tensor<3x16x16xf32>
  %v = aten.view %g [48, 16] : (tensor<3x16x16xf32>) -> tensor<48x16xf32>
  %y = aten.mm %v, %w : (tensor<48x16xf32>, tensor<16x8xf32>) -> tensor<48x8xf32>
  return %y : tensor<48x8xf32>
}

// Two regions, because a softmax over the rows needs all of them.
// CHECK-LABEL: func.func @two(
// CHECK: aten.cat
// CHECK: aten.softmax %{{.*}} : (tensor<16x8xf32>)
// CHECK: aten.slice
func.func @two(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %v: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %y = aten.linear %g, %w : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  %s = aten.softmax %y dim 0 : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %z = aten.linear %s, %v : (tensor<16x8xf32>, tensor<4x8xf32>) -> tensor<16x4xf32>
  %r = dist.reduce_scatter sum over #tp %z dim 0 : (tensor<16x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @in_flight(
// CHECK-COUNT-2: !dist.future<tensor<8x16xf32>>
func.func @in_flight(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> tensor<16x8xf32> {
  %f = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> !dist.future<tensor<16x16xf32>>
  %n = aten.neg %w : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %g = dist.wait %f : !dist.future<tensor<16x16xf32>>
  %y = aten.linear %g, %n : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// Triangles of a batch are each computed as a whole.
// CHECK-LABEL: func.func @triangles(
// CHECK: aten.tril {{.*}} -> tensor<4x16x16xf32>
// CHECK: aten.tril {{.*}} -> tensor<4x16x16xf32>
// CHECK: return
func.func @triangles(%x: tensor<2x16x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x16x16xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
  %t = aten.tril %g : (tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %y = aten.linear %t, %w : (tensor<8x16x16xf32>, tensor<16x16xf32>) -> tensor<8x16x16xf32>
  %s = dist.reduce_scatter sum over #tp %y dim 0 : (tensor<8x16x16xf32>) -> tensor<2x16x16xf32>
  return %s : tensor<2x16x16xf32>
}
