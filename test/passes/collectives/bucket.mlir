// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-bucket-collectives=memory-limit=1000000 --dist-verify-schedule %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 0 -- --dist-bucket-collectives=memory-limit=1000000 %}
// RUN: shard-opt --dist-bucket-collectives=memory-limit=1000000 --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// Who may share a bucket (B1), and what a bucket keeps of its members (B5, B7).

// STATS-DAG: 9 buckets
// STATS-DAG: 27 bucketed

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>
#Stp = #dist.layout<#mesh, [R, S(0)]>
#sizes = #dist.layout<#mesh, [R, S(0, sizes = [5, 3, 0, 2])]>

// Gathers of weights one by one, along dims 0 and 1: one, ahead of the first use. Operands are arguments, a result is
// returned.
// CHECK-LABEL: func.func @gathers(
// CHECK-NEXT: %[[W:.*]]:2 = dist.all_gather over #tp %arg1 dim 0, %arg2 dim 1
// CHECK-SAME: closed = "complete"
// CHECK-SAME: members = [{bytes = 192 : i64, location = "bucket.mlir:{{[0-9]+}}", tensor = "table"}, {bytes = 96
// CHECK-NEXT: aten.linear %arg0, %[[W]]#0
// CHECK-NEXT: aten.linear %{{.*}}, %[[W]]#1
func.func @gathers(%x: tensor<4x6xf32>, %a: tensor<2x6xf32> {dist.name = "table"}, %b: tensor<3x2xf32>) -> (tensor<4x3xf32>, tensor<3x8xf32>) {
  %wa = dist.all_gather over #tp %a dim 0 : (tensor<2x6xf32>) -> tensor<8x6xf32>
  %y = aten.linear %x, %wa : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  %wb = dist.all_gather over #tp %b dim 1 : (tensor<3x2xf32>) -> tensor<3x8xf32>
  %z = aten.linear %y, %wb : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
  return %z, %wb : tensor<4x3xf32>, tensor<3x8xf32>
}

// Gradients of nine norm weights, reduced one by one: one all-reduce of 9 x 256.
// CHECK-LABEL: func.func @norm_gradients(
// CHECK: dist.all_reduce sum over #tp %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {
// CHECK-NOT: dist.all_reduce
func.func @norm_gradients(%g: tensor<9x5x256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) {
  %0 = aten.select %g dim 0 at 0 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %1 = aten.select %g dim 0 at 1 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %2 = aten.select %g dim 0 at 2 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %3 = aten.select %g dim 0 at 3 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %4 = aten.select %g dim 0 at 4 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %5 = aten.select %g dim 0 at 5 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %6 = aten.select %g dim 0 at 6 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %7 = aten.select %g dim 0 at 7 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %8 = aten.select %g dim 0 at 8 : (tensor<9x5x256xf32>) -> tensor<5x256xf32>
  %s0 = aten.sum %0 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r0 = dist.all_reduce sum over #tp %s0 : tensor<256xf32>
  %s1 = aten.sum %1 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r1 = dist.all_reduce sum over #tp %s1 : tensor<256xf32>
  %s2 = aten.sum %2 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r2 = dist.all_reduce sum over #tp %s2 : tensor<256xf32>
  %s3 = aten.sum %3 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r3 = dist.all_reduce sum over #tp %s3 : tensor<256xf32>
  %s4 = aten.sum %4 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r4 = dist.all_reduce sum over #tp %s4 : tensor<256xf32>
  %s5 = aten.sum %5 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r5 = dist.all_reduce sum over #tp %s5 : tensor<256xf32>
  %s6 = aten.sum %6 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r6 = dist.all_reduce sum over #tp %s6 : tensor<256xf32>
  %s7 = aten.sum %7 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r7 = dist.all_reduce sum over #tp %s7 : tensor<256xf32>
  %s8 = aten.sum %8 dim [0] : (tensor<5x256xf32>) -> tensor<256xf32>
  %r8 = dist.all_reduce sum over #tp %s8 : tensor<256xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
}

// Another kind, reduction, element type or group: alone, and said so.
// CHECK-LABEL: func.func @keys(
// CHECK-DAG: dist.all_reduce sum over #tp %arg0 {dist.alone = {{.*}}reason = "no other collective has its kind, group, element type and reduction"
// CHECK-DAG: dist.all_reduce max over #tp %arg0 {
// CHECK-DAG: dist.all_reduce sum over #dp %arg0 {
// CHECK-DAG: dist.all_reduce sum over #tp %arg1 {
// CHECK-DAG: dist.reduce_scatter sum over #tp %arg0 dim 0 {
// CHECK-DAG: dist.permute over #tp pairs {{.*}}reason = "its kind has no buckets"
func.func @keys(%x: tensor<8xf32>, %y: tensor<8xf64>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf64>, tensor<2xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce sum over #tp %x : tensor<8xf32>
  %1 = dist.all_reduce max over #tp %x : tensor<8xf32>
  %2 = dist.all_reduce sum over #dp %x : tensor<8xf32>
  %3 = dist.all_reduce sum over #tp %y : tensor<8xf64>
  %4 = dist.reduce_scatter sum over #tp %x dim 0 : (tensor<8xf32>) -> tensor<2xf32>
  %5 = dist.permute over #tp pairs [[0, 1]] %x : tensor<8xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf64>, tensor<2xf32>, tensor<8xf32>
}

// Groups are their rank lists: irregular ones are ordinary, the same ranks under another name are the same, and lists
// of which only the second differs are different.
// CHECK-LABEL: func.func @irregular(
// CHECK-DAG: dist.all_reduce sum over #{{.*}} %arg0, %arg1 {
// CHECK-DAG: dist.all_reduce sum over #{{.*}} %arg2 {dist.alone
// CHECK-DAG: dist.all_reduce sum over #tp %arg3, %arg4 {
func.func @irregular(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>, %e: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce sum over #dist.groups<[[0, 2, 5, 7], [1, 3, 4, 6]]> %a : tensor<8xf32>
  %1 = dist.all_reduce sum over #dist.groups<[[1, 3, 4, 6], [0, 2, 5, 7]]> %b : tensor<8xf32>
  %2 = dist.all_reduce sum over #dist.groups<[[0, 2, 5, 7], [1, 3, 6, 4]]> %c : tensor<8xf32>
  %3 = dist.all_reduce sum over #tp %d : tensor<8xf32>
  %4 = dist.all_reduce sum over #dist.groups<[[0, 1, 2, 3], [4, 5, 6, 7]]> %e : tensor<8xf32>
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Interleaved in the program, apart in buckets.
// CHECK-LABEL: func.func @interleaved(
// CHECK-DAG: dist.all_gather over #tp %arg0 dim 0, %arg2 dim 0 {
// CHECK-DAG: dist.all_gather over #dp %arg1 dim 0, %arg3 dim 0 {
func.func @interleaved(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>)
    -> (tensor<8xf32>, tensor<4xf32>, tensor<12xf32>, tensor<6xf32>) {
  %0 = dist.all_gather over #tp %a dim 0 : (tensor<2xf32>) -> tensor<8xf32>
  %1 = dist.all_gather over #dp %b dim 0 : (tensor<2xf32>) -> tensor<4xf32>
  %2 = dist.all_gather over #tp %c dim 0 : (tensor<3xf32>) -> tensor<12xf32>
  %3 = dist.all_gather over #dp %d dim 0 : (tensor<3xf32>) -> tensor<6xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<4xf32>, tensor<12xf32>, tensor<6xf32>
}

// Uneven shards, lists, empty shards, nothing at all, and a size only known at run time.
// CHECK-LABEL: func.func @uneven(
// CHECK: dist.all_gather over #tp %arg0 dim 0, %arg1 dim 0 extents [5, 3, 0, 2], %arg2 dim 1, %arg0 dim 0 full %{{.*}} {
// CHECK-SAME: (tensor<?x3xf32>, tensor<?x2xf32>, tensor<4x0xf32>, tensor<?x3xf32>) -> (tensor<10x3xf32>, tensor<10x2xf32>, tensor<4x0xf32>, tensor<?x3xf32>)
// CHECK-DAG: dist.reduce_scatter sum over #tp %arg3 dim 0 extents [5, 3, 0, 2], %arg4 dim 1 {
func.func @uneven(%a: tensor<?x3xf32> {dist.global_type = tensor<10x3xf32>, dist.layout = #Stp},
                  %b: tensor<?x2xf32> {dist.global_type = tensor<10x2xf32>, dist.layout = #sizes},
                  %c: tensor<4x0xf32>, %d: tensor<10x2xf32>, %e: tensor<3x5xf32>)
    -> (tensor<10x3xf32>, tensor<10x2xf32>, tensor<4x0xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<3x?xf32>) {
  %n = arith.constant 10 : index
  %0 = dist.all_gather over #tp %a dim 0 : (tensor<?x3xf32>) -> tensor<10x3xf32>
  %1 = dist.all_gather over #tp %b dim 0 extents [5, 3, 0, 2] : (tensor<?x2xf32>) -> tensor<10x2xf32>
  %2 = dist.all_gather over #tp %c dim 1 : (tensor<4x0xf32>) -> tensor<4x0xf32>
  %3 = dist.all_gather over #tp %a dim 0 full %n : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %4 = dist.reduce_scatter sum over #tp %d dim 0 extents [5, 3, 0, 2] : (tensor<10x2xf32>) -> tensor<?x2xf32>
  %5 = dist.reduce_scatter sum over #tp %e dim 1 : (tensor<3x5xf32>) -> tensor<3x?xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<10x3xf32>, tensor<10x2xf32>, tensor<4x0xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<3x?xf32>
}

// Half floats reduce like any other type; what is a bucket already may grow.
// CHECK-LABEL: func.func @half(
// CHECK: dist.all_reduce avg over #tp %arg0, %arg1, %arg2 {
// CHECK-SAME: members = [{bytes = 24 : i64, location = "bucket.mlir:{{[0-9]+}}"}, {bytes = 6 : i64, location = "bucket.mlir:{{[0-9]+}}"}]
func.func @half(%a: tensor<5xf16>, %b: tensor<7xf16>, %c: tensor<3xf16>) -> (tensor<5xf16>, tensor<7xf16>, tensor<3xf16>) {
  %0:2 = dist.all_reduce avg over #tp %a, %b : tensor<5xf16>, tensor<7xf16>
  %1 = dist.all_reduce avg over #tp %c : tensor<3xf16>
  return %0#0, %0#1, %1 : tensor<5xf16>, tensor<7xf16>, tensor<3xf16>
}

// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: dist.all_reduce sum over #tp : () -> ()
// CHECK-NEXT: return
func.func @nothing() {
  dist.all_reduce sum over #tp : () -> ()
  return
}
