// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-simplify-collectives %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-simplify-collectives %}
// RUN: shard-opt --dist-simplify-collectives --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// STATS-DAG: 2 gather-slices
// STATS-DAG: 2 gathers-of-replicated
// STATS-DAG: 4 reduces-of-replicated

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>
#own = #dist.extents<10 over #mesh ["tp"]>
#begin = #dist.extents<table [0, 3, 6, 9, 0, 3, 6, 9] over #mesh>
#end = #dist.extents<table [3, 6, 9, 10, 3, 6, 9, 10] over #mesh>
#Stp = #dist.layout<#mesh, [R, S(0)]>
#Sdp = #dist.layout<#mesh, [S(0), R]>
#R = #dist.layout<#mesh, [R, R]>
#Ptp = #dist.layout<#mesh, [R, P(sum)]>

// The rank's own part of what was gathered, of an uneven dim.
// CHECK-LABEL: func.func @own_slice(
// CHECK-NEXT: return %arg0
func.func @own_slice(%x: tensor<?x4xf32> {dist.global_type = tensor<10x4xf32>, dist.layout = #Stp}) -> tensor<?x4xf32> {
  %b = dist.extent #begin
  %e = dist.extent #end
  %g = dist.all_gather over #tp %x dim 0 : (tensor<?x4xf32>) -> tensor<10x4xf32>
  %y = aten.slice %g dim 0 [%b : %e : 1] : (tensor<10x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// The same by arithmetic on the position.
// CHECK-LABEL: func.func @own_slice_by_position(
// CHECK-NEXT: return %arg0
func.func @own_slice_by_position(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %two = arith.constant 2 : index
  %p = dist.axis_index over #tp
  %b = arith.muli %p, %two : index
  %e = arith.addi %b, %two : index
  %g = dist.all_gather over #tp %x dim 0 : (tensor<2x4xf32>) -> tensor<8x4xf32>
  %y = aten.slice %g dim 0 [%b : %e : 1] : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A neighbour's part, a part along another dim, and a part by the position along another axis stay.
// CHECK-LABEL: func.func @not_own_slice(
// CHECK: dist.all_gather
// CHECK: aten.slice
// CHECK: aten.slice
// CHECK: aten.slice
func.func @not_own_slice(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x2xf32>, tensor<4x8xf32>) {
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %p = dist.axis_index over #tp
  %d = dist.axis_index over #dp
  %b = arith.muli %p, %two : index
  %e = arith.addi %b, %two : index
  %nb = arith.addi %b, %two : index
  %nb0 = arith.remui %nb, %eight : index
  %ne = arith.addi %nb0, %two : index
  %db = arith.muli %d, %four : index
  %de = arith.addi %db, %four : index
  %g = dist.all_gather over #tp %x dim 0 : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %n = aten.slice %g dim 0 [%nb0 : %ne : 1] : (tensor<8x8xf32>) -> tensor<2x8xf32>
  %o = aten.slice %g dim 1 [%b : %e : 1] : (tensor<8x8xf32>) -> tensor<8x2xf32>
  %q = aten.slice %g dim 0 [%db : %de : 1] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return %n, %o, %q : tensor<2x8xf32>, tensor<8x2xf32>, tensor<4x8xf32>
}

// Replicated along tp by its layout: nothing to send. Along dp it differs.
// CHECK-LABEL: func.func @replicated_gather(
// CHECK-NEXT: %[[Y:.*]] = aten.cat %arg0, %arg0, %arg0, %arg0 dim 1
// CHECK-NEXT: %[[Z:.*]] = dist.all_gather over #dp %arg0 dim 0
// CHECK-NEXT: return %[[Y]], %[[Z]]
func.func @replicated_gather(%x: tensor<3x2xf32> {dist.global_type = tensor<6x2xf32>, dist.layout = #Sdp}) -> (tensor<3x8xf32>, tensor<6x2xf32>) {
  %y = dist.all_gather over #tp %x dim 1 : (tensor<3x2xf32>) -> tensor<3x8xf32>
  %z = dist.all_gather over #dp %x dim 0 : (tensor<3x2xf32>) -> tensor<6x2xf32>
  return %y, %z : tensor<3x8xf32>, tensor<6x2xf32>
}

// A constant is the same everywhere, and so is what is computed from it.
// CHECK-LABEL: func.func @constant_gather(
// CHECK-NOT: dist.all_gather
// CHECK: %[[Y:.*]] = aten.cat
// CHECK: dist.all_gather over #tp %arg0 dim 0
// CHECK: return %[[Y]]
func.func @constant_gather(%x: tensor<1xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %c = aten.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %r = aten.relu %c : (tensor<2xf32>) -> tensor<2xf32>
  %y = dist.all_gather over #tp %r dim 0 : (tensor<2xf32>) -> tensor<8xf32>
  %z = dist.all_gather over #tp %x dim 0 : (tensor<1xf32>) -> tensor<4xf32>
  return %y, %z : tensor<8xf32>, tensor<4xf32>
}

// A sum over four equal values is four times the value, an average the value, wherever it comes from.
// CHECK-LABEL: func.func @replicated_reduce(
// CHECK-NOT: dist.all_reduce sum over #tp %arg0
// CHECK-DAG: %[[FOUR:.*]] = aten.constant dense<4.000000e+00>
// CHECK-DAG: %[[A:.*]] = aten.mul %arg0, %[[FOUR]]
// CHECK-DAG: %[[R:.*]] = dist.all_reduce sum over #tp %arg1
// CHECK: return %[[A]], %[[R]]
func.func @replicated_reduce(%x: tensor<3x2xf32> {dist.global_type = tensor<3x2xf32>, dist.layout = #R},
                             %p: tensor<3x2xf32> {dist.global_type = tensor<3x2xf32>, dist.layout = #Ptp})
    -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %a = dist.all_reduce sum over #tp %x : tensor<3x2xf32>
  %r = dist.all_reduce sum over #tp %p : tensor<3x2xf32>
  %b = dist.all_reduce avg over #dist.groups<[[0, 1, 2, 3], [4, 5, 6, 7]]> %r : tensor<3x2xf32>
  return %a, %b : tensor<3x2xf32>, tensor<3x2xf32>
}

// Scattered: this rank's part. Values computed from replicated ones are replicated.
// CHECK-LABEL: func.func @replicated_scatter(
// CHECK-NOT: dist.reduce_scatter
// CHECK-DAG: %[[B:.*]] = dist.extent #dist.extents<table [0, 3, 6, 9, 0, 3, 6, 9] over #mesh>
// CHECK-DAG: %[[E:.*]] = dist.extent #dist.extents<table [3, 6, 9, 10, 3, 6, 9, 10] over #mesh>
// CHECK: %[[S:.*]] = aten.slice %{{.*}} dim 0 [%[[B]] : %[[E]] : 1]
// CHECK: aten.mul %[[S]]
func.func @replicated_scatter(%x: tensor<10x2xf32> {dist.global_type = tensor<10x2xf32>, dist.layout = #R}) -> tensor<?x2xf32> {
  %r = aten.relu %x : (tensor<10x2xf32>) -> tensor<10x2xf32>
  %y = dist.reduce_scatter sum over #tp %r dim 0 : (tensor<10x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// Differs along dp: reduced over tp, it is still no value that both rows hold.
// CHECK-LABEL: func.func @other_axis(
// CHECK: dist.all_reduce sum over #tp
// CHECK: dist.all_reduce max over #dp
func.func @other_axis(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
  %b = dist.all_reduce max over #dp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// Irregular groups: what was gathered in one of them is the same there, and not elsewhere.
// CHECK-LABEL: func.func @irregular(
// CHECK: %[[G:.*]] = dist.all_gather
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce max over #{{.*}} %[[G]]
// CHECK-NEXT: return %[[G]], %[[A]]
func.func @irregular(%x: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %g = dist.all_gather over #dist.groups<[[0, 2, 5, 7], [1, 3, 4, 6]]> %x dim 0 : (tensor<2xf32>) -> tensor<8xf32>
  %same = dist.all_reduce max over #dist.groups<[[0, 2, 5, 7], [1, 3, 4, 6]]> %g : tensor<8xf32>
  %other = dist.all_reduce max over #dist.groups<[[0, 1], [2, 3], [4, 5], [6, 7]]> %g : tensor<8xf32>
  return %same, %other : tensor<8xf32>, tensor<8xf32>
}
