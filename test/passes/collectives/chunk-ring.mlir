// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives and products as rings of permutes.
// RUN: shard-opt --dist-chunk-collectives=chunks=ring %s | FileCheck %s
// RUN: shard-opt --dist-chunk-collectives=chunks=ring --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-chunk-collectives=chunks=ring %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-chunk-collectives=chunks=ring --dist-schedule-collectives=memory-limit=1GB --dist-verify-schedule %}
// RUN: not shard-opt --dist-chunk-collectives="chunks=ring topology=sim-v1" %s 2>&1 | FileCheck --check-prefix=PRICE %s
// PRICE: error: chunks: a ring is made of permutes, which have no price in the cost model 'sim-v1': choose another topology

// STATS-DAG: 7 gathers
// STATS-DAG: 6 reduces
// STATS-DAG: 9 regions
// STATS-DAG: 9 rings
// STATS-DAG: 2 in-one-sum

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#grid = #dist.mesh<["dp" = 2, "tp" = 3]>
#rows = #dist.axes<#grid, ["tp"]>
#columns = #dist.axes<#grid, ["dp"]>
#lists = #dist.groups<[[0, 2], [3, 1]]>

// The first piece is what the rank has; the next comes from the rank before. Block j of the whole is piece r - j.
// CHECK-LABEL: func.func @gather(
// CHECK: %[[R:.*]] = dist.axis_index over #tp
// CHECK: %[[Y0:.*]] = aten.linear %arg0, %arg1 :
// CHECK: %[[X1:.*]] = dist.permute over #tp pairs {{\[\[}}0, 1], [1, 2], [2, 3], [3, 0]] %arg0 : tensor<4x48xf32>
// CHECK: %[[Y1:.*]] = aten.linear %[[X1]], %arg1 :
// CHECK: %[[X2:.*]] = dist.permute over #tp {{.*}} %[[X1]]
// CHECK: %[[Y2:.*]] = aten.linear %[[X2]], %arg1 :
// CHECK: %[[X3:.*]] = dist.permute over #tp {{.*}} %[[X2]]
// CHECK: %[[Y3:.*]] = aten.linear %[[X3]], %arg1 :
// CHECK: %[[ALL:.*]] = aten.cat {{.*}} dim 1
// CHECK: aten.select %[[ALL]] dim 1 at %[[R]]
// CHECK-COUNT-3: aten.select %[[ALL]] dim 1 at
// CHECK: aten.cat
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @gather(%x: tensor<4x48xf32>, %w: tensor<8x48xf32>) -> tensor<16x8xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x48xf32>) -> tensor<16x48xf32>
  %y = aten.linear %g, %w : (tensor<16x48xf32>, tensor<8x48xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// A rank sends its part of the block that is farthest on its way, and its own block comes last.
// CHECK-LABEL: func.func @scatter(
// CHECK: %[[R:.*]] = dist.axis_index over #tp
// CHECK: %[[C3:.*]] = arith.constant 3 : index
// CHECK: %[[SUM:.*]] = arith.addi %[[R]], %[[C3]]
// CHECK: %[[BEFORE:.*]] = arith.remui %[[SUM]]
// CHECK: aten.select {{.*}} at %[[BEFORE]]
// CHECK: %[[Y1:.*]] = aten.linear
// CHECK: %[[S1:.*]] = dist.permute over #tp {{.*}} %[[Y1]] : tensor<4x8xf32>
// CHECK: %[[Y2:.*]] = aten.linear
// CHECK: %[[A2:.*]] = aten.add %[[S1]], %[[Y2]]
// CHECK: %[[S2:.*]] = dist.permute over #tp {{.*}} %[[A2]]
// CHECK: %[[A3:.*]] = aten.add %[[S2]]
// CHECK: %[[S3:.*]] = dist.permute over #tp {{.*}} %[[A3]]
// CHECK: aten.select {{.*}} at %[[R]]
// CHECK: %[[Y0:.*]] = aten.linear
// CHECK: %[[A:.*]] = aten.add %[[S3]], %[[Y0]]
// CHECK: return %[[A]]
func.func @scatter(%x: tensor<16x4xf32>, %w: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %y = aten.linear %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %s = dist.reduce_scatter sum over #tp %y dim 0 : (tensor<16x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// From a gather to a scatter nothing is put together but what is read elsewhere, and what comes from elsewhere is cut.
// CHECK-LABEL: func.func @mlp(
// CHECK-COUNT-5: dist.permute over #tp
// CHECK-COUNT-2: aten.cat
// CHECK: dist.permute over #tp
// CHECK-NOT: aten.cat
// CHECK: return
func.func @mlp(%x: tensor<3x4x16xf32>, %gate: tensor<8x16xf32>, %up: tensor<8x16xf32>, %down: tensor<16x8xf32>, %mask: tensor<16x1xf32>)
    -> (tensor<3x4x16xf32>, tensor<3x16x8xf32>) {
  %g = dist.all_gather over #tp %x dim 1 : (tensor<3x4x16xf32>) -> tensor<3x16x16xf32>
  %a = aten.linear %g, %gate : (tensor<3x16x16xf32>, tensor<8x16xf32>) -> tensor<3x16x8xf32>
  %s = aten.silu %a : (tensor<3x16x8xf32>) -> tensor<3x16x8xf32>
  %b = aten.linear %g, %up : (tensor<3x16x16xf32>, tensor<8x16xf32>) -> tensor<3x16x8xf32>
  %m = aten.mul %s, %b : (tensor<3x16x8xf32>, tensor<3x16x8xf32>) -> tensor<3x16x8xf32>
  %n = aten.mul %m, %mask : (tensor<3x16x8xf32>, tensor<16x1xf32>) -> tensor<3x16x8xf32>
  %y = aten.linear %n, %down : (tensor<3x16x8xf32>, tensor<16x8xf32>) -> tensor<3x16x16xf32>
  %r = dist.reduce_scatter sum over #tp %y dim 1 : (tensor<3x16x16xf32>) -> tensor<3x4x16xf32>
  %z = aten.add %x, %r : (tensor<3x4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %z, %a : tensor<3x4x16xf32>, tensor<3x16x8xf32>
}

// Rows in the middle of a dim that a view has merged.
// CHECK-LABEL: func.func @merged(
// CHECK: aten.mm {{.*}} : (tensor<12x64xf32>, tensor<64x8xf32>) -> tensor<12x8xf32>
// CHECK: aten.view {{.*}} -> tensor<3x1x4x8xf32>
// CHECK: aten.select {{.*}} : (tensor<3x4x4x8xf32>) -> tensor<3x4x8xf32>
// CHECK: return
func.func @merged(%x: tensor<3x4x64xf32>, %w: tensor<64x8xf32>) -> tensor<48x8xf32> {
  %g = dist.all_gather over #tp %x dim 1 : (tensor<3x4x64xf32>) -> tensor<3x16x64xf32>
  %v = aten.view %g [48, 64] : (tensor<3x16x64xf32>) -> tensor<48x64xf32>
  %y = aten.mm %v, %w : (tensor<48x64xf32>, tensor<64x8xf32>) -> tensor<48x8xf32>
  return %y : tensor<48x8xf32>
}

// One axis of two; over the other axis nothing is sent in turn, for its ranks have other rows.
// CHECK-LABEL: func.func @axes(
// CHECK: dist.axis_index over #[[TP:tp[0-9]+]]{{$}}
// CHECK-COUNT-4: dist.permute over #[[TP]] pairs {{\[\[}}0, 1], [1, 2], [2, 0]]
// CHECK: dist.all_reduce
// CHECK: return
func.func @axes(%x: tensor<5x48xf32>, %w: tensor<8x48xf32>, %v: tensor<8x8xf32>) -> (tensor<5x8xf32>, tensor<15x8xf32>) {
  %g = dist.all_gather over #rows %x dim 0 : (tensor<5x48xf32>) -> tensor<15x48xf32>
  %y = aten.linear %g, %w : (tensor<15x48xf32>, tensor<8x48xf32>) -> tensor<15x8xf32>
  %z = aten.linear %y, %v : (tensor<15x8xf32>, tensor<8x8xf32>) -> tensor<15x8xf32>
  %r = dist.reduce_scatter sum over #rows %z dim 0 : (tensor<15x8xf32>) -> tensor<5x8xf32>
  %s = dist.all_reduce sum over #columns %y : tensor<15x8xf32>
  return %r, %s : tensor<5x8xf32>, tensor<15x8xf32>
}

// Groups that are lists of ranks, in their order; of two ranks. One sum of two rounds once, in any type.
// CHECK-LABEL: func.func @lists(
// CHECK: dist.axis_index over #group
// CHECK: dist.permute over #group pairs {{\[\[}}0, 1], [1, 0]] {{.*}} : tensor<4x8xf32>
// CHECK-LABEL: func.func @two_half(
// CHECK: dist.permute {{.*}} : tensor<4x8xbf16>
func.func @lists(%x: tensor<4x48xf32>, %w: tensor<48x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %g = dist.all_gather over #lists %x dim 0 : (tensor<4x48xf32>) -> tensor<8x48xf32>
  %y = aten.mm %g, %w : (tensor<8x48xf32>, tensor<48x8xf32>) -> tensor<8x8xf32>
  %r = dist.reduce_scatter sum over #lists %y dim 0 : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y, %r : tensor<8x8xf32>, tensor<4x8xf32>
}
func.func @two_half(%x: tensor<8x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %y = aten.mm %x, %w : (tensor<8x4xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
  %r = dist.reduce_scatter sum over #lists %y dim 0 : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// Two rings of one program, each in flight.
// CHECK-LABEL: func.func @in_flight(
// CHECK-COUNT-6: !dist.future<tensor<4x
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @in_flight(%x: tensor<4x48xf32>, %w: tensor<8x48xf32>, %v: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %f = dist.all_gather over #tp %x dim 0 : (tensor<4x48xf32>) -> !dist.future<tensor<16x48xf32>>
  %g = dist.wait %f : !dist.future<tensor<16x48xf32>>
  %y = aten.linear %g, %w : (tensor<16x48xf32>, tensor<8x48xf32>) -> tensor<16x8xf32>
  %s = aten.softmax %y dim 0 : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %t = aten.permute %s [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %a = dist.all_gather over #tp %v dim 0 : (tensor<8x16xf32>) -> tensor<32x16xf32>
  %z = aten.mm %a, %s : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  %r = dist.reduce_scatter sum over #tp %z dim 0 : (tensor<32x8xf32>) -> tensor<8x8xf32>
  %m = aten.mm %r, %t : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %m : tensor<8x16xf32>
}

// Each hop would round, and a largest value is not a sum.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: dist.permute
// CHECK: return
func.func @rounded(%x: tensor<16x4xbf16>, %w: tensor<8x4xbf16>, %u: tensor<16x4xf32>, %v: tensor<8x4xf32>) -> (tensor<4x8xbf16>, tensor<4x8xf32>) {
  %y = aten.linear %x, %w : (tensor<16x4xbf16>, tensor<8x4xbf16>) -> tensor<16x8xbf16>
  %s = dist.reduce_scatter sum over #tp %y dim 0 : (tensor<16x8xbf16>) -> tensor<4x8xbf16>
  %z = aten.linear %u, %v : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %m = dist.reduce_scatter max over #tp %z dim 0 : (tensor<16x8xf32>) -> tensor<4x8xf32>
  return %s, %m : tensor<4x8xbf16>, tensor<4x8xf32>
}
