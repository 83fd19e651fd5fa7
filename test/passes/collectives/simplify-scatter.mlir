// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-simplify-collectives=topology=cpu-local %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-simplify-collectives=topology=cpu-local %}
// RUN: shard-opt --dist-simplify-collectives=topology=cpu-local --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// STATS-DAG: 2 scattered
// STATS-DAG: 1 narrowed

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>

// Of an all-reduce each rank keeps its part: half the bytes.
// CHECK-LABEL: func.func @reduce_then_slice(
// CHECK: %[[Y:.*]] = dist.reduce_scatter sum over #tp %arg0 dim 1 : (tensor<3x10xf32>) -> tensor<3x?xf32>
// CHECK-NEXT: aten.relu %[[Y]]
// CHECK-NOT: dist.all_reduce
func.func @reduce_then_slice(%x: tensor<3x10xf32>) -> (tensor<3x?xf32>, tensor<3x?xf32>) {
  %b = dist.extent #dist.extents<table [0, 3, 6, 9] over #mesh>
  %e = dist.extent #dist.extents<table [3, 6, 9, 10] over #mesh>
  %r = dist.all_reduce sum over #tp %x : tensor<3x10xf32>
  %s = aten.slice %r dim 1 [%b : %e : 1] : (tensor<3x10xf32>) -> tensor<3x?xf32>
  %y = aten.relu %s : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %t = aten.slice %r dim 1 [%b : %e : 1] : (tensor<3x10xf32>) -> tensor<3x?xf32>
  return %y, %t : tensor<3x?xf32>, tensor<3x?xf32>
}

// Parts that are no chunks come with a list. One rank takes nothing.
// CHECK-LABEL: func.func @listed_parts(
// CHECK: dist.reduce_scatter max over #tp %arg0 dim 0 extents [5, 3, 0, 2]
func.func @listed_parts(%x: tensor<10xf32>) -> tensor<?xf32> {
  %b = dist.extent #dist.extents<table [0, 5, 8, 8] over #mesh>
  %e = dist.extent #dist.extents<table [5, 8, 8, 10] over #mesh>
  %r = dist.all_reduce max over #tp %x : tensor<10xf32>
  %s = aten.slice %r dim 0 [%b : %e : 1] : (tensor<10xf32>) -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// Someone needs all of it; parts overlap; parts leave a gap.
// CHECK-LABEL: func.func @needed_whole(
// CHECK: dist.all_reduce
// CHECK-NOT: dist.reduce_scatter
func.func @needed_whole(%x: tensor<8xf32>, %z: tensor<10xf32>, %u: tensor<10xf32>)
    -> (tensor<2xf32>, tensor<8xf32>, tensor<?xf32>, tensor<?xf32>) {
  %b = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
  %e = dist.extent #dist.extents<table [2, 4, 6, 8] over #mesh>
  %r = dist.all_reduce sum over #tp %x : tensor<8xf32>
  %s = aten.slice %r dim 0 [%b : %e : 1] : (tensor<8xf32>) -> tensor<2xf32>
  %e1 = dist.extent #dist.extents<table [3, 5, 7, 10] over #mesh>
  %q = dist.all_reduce sum over #tp %z : tensor<10xf32>
  %t = aten.slice %q dim 0 [%b : %e1 : 1] : (tensor<10xf32>) -> tensor<?xf32>
  %p = dist.all_reduce sum over #tp %u : tensor<10xf32>
  %v = aten.slice %p dim 0 [%b : %e : 1] : (tensor<10xf32>) -> tensor<?xf32>
  return %s, %r, %t, %v : tensor<2xf32>, tensor<8xf32>, tensor<?xf32>, tensor<?xf32>
}

// The sum stays f32; its way back to the ranks takes bf16. Dim 1 is the first that divides.
// CHECK-LABEL: func.func @narrow_after_reduce(
// CHECK-NEXT: %[[S:.*]] = dist.reduce_scatter sum over #tp %arg0 dim 1 : (tensor<1023x1024xf32>) -> tensor<1023x256xf32>
// CHECK-NEXT: %[[C:.*]] = aten.to_copy %[[S]] to bf16
// CHECK-NEXT: %[[G:.*]] = dist.all_gather over #tp %[[C]] dim 1 : (tensor<1023x256xbf16>) -> tensor<1023x1024xbf16>
// CHECK-NEXT: return %[[G]]
func.func @narrow_after_reduce(%x: tensor<1023x1024xf32>) -> tensor<1023x1024xbf16> {
  %r = dist.all_reduce sum over #tp %x : tensor<1023x1024xf32>
  %c = aten.to_copy %r to bf16 : (tensor<1023x1024xf32>) -> tensor<1023x1024xbf16>
  return %c : tensor<1023x1024xbf16>
}

// Small: latency is all there is. Odd: no even shards. And a sum of narrow values is never made before they are wide.
// CHECK-LABEL: func.func @not_narrowed(
// CHECK-NEXT: dist.all_reduce sum over #tp %arg0 : tensor<4xf32>
// CHECK-NEXT: aten.to_copy
// CHECK-NEXT: dist.all_reduce sum over #tp %arg1 : tensor<1023x1023xf32>
// CHECK-NEXT: aten.to_copy
// CHECK-NEXT: %[[W:.*]] = aten.to_copy %arg2 to f32
// CHECK-NEXT: dist.all_reduce sum over #tp %[[W]] : tensor<64xf32>
func.func @not_narrowed(%x: tensor<4xf32>, %y: tensor<1023x1023xf32>, %z: tensor<64xbf16>)
    -> (tensor<4xbf16>, tensor<1023x1023xbf16>, tensor<64xf32>) {
  %r = dist.all_reduce sum over #tp %x : tensor<4xf32>
  %c = aten.to_copy %r to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
  %q = dist.all_reduce sum over #tp %y : tensor<1023x1023xf32>
  %d = aten.to_copy %q to bf16 : (tensor<1023x1023xf32>) -> tensor<1023x1023xbf16>
  %w = aten.to_copy %z to f32 : (tensor<64xbf16>) -> tensor<64xf32>
  %p = dist.all_reduce sum over #tp %w : tensor<64xf32>
  return %c, %d, %p : tensor<4xbf16>, tensor<1023x1023xbf16>, tensor<64xf32>
}
