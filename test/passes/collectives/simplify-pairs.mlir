// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-simplify-collectives=topology=cpu-local --dist-verify-stage=scheduled %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-simplify-collectives=topology=cpu-local %}
// RUN: shard-opt --dist-simplify-collectives=topology=cpu-local --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// Every rule on starts and waits, as imported graphs have them.

// STATS-DAG: 1 gather-slices
// STATS-DAG: 1 gathers-of-replicated
// STATS-DAG: 1 reduces-of-replicated
// STATS-DAG: 1 scattered
// STATS-DAG: 1 narrowed
// STATS-DAG: 2 sums
// STATS-DAG: 1 averages
// STATS-DAG: 1 chains
// STATS-DAG: 2 casts
// STATS-DAG: 1 views
// STATS-DAG: 1 permutes
// STATS-DAG: 2 duplicates

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>
#R = #dist.layout<#mesh, [R, R]>

// What rules make is a start in its place, and a wait at the first use.
// CHECK-LABEL: func.func @siblings(
// CHECK-NEXT: %[[AB:.*]] = aten.add %arg0, %arg1
// CHECK-NEXT: %[[F:.*]] = dist.all_reduce sum over #tp %[[AB]] : (tensor<6xf32>) -> !dist.future<tensor<6xf32>>
// CHECK-NEXT: %[[N:.*]] = aten.neg %arg0
// CHECK-NEXT: %[[W:.*]] = dist.wait %[[F]]
// CHECK-NEXT: return %[[W]], %[[N]]
func.func @siblings(%a: tensor<6xf32>, %b: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %fa = dist.all_reduce sum over #tp %a : (tensor<6xf32>) -> !dist.future<tensor<6xf32>>
  %fb = dist.all_reduce sum over #tp %b : (tensor<6xf32>) -> !dist.future<tensor<6xf32>>
  %ra, %rb = dist.wait %fa, %fb : !dist.future<tensor<6xf32>>, !dist.future<tensor<6xf32>>
  %s = aten.add %ra, %rb : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %n = aten.neg %a : (tensor<6xf32>) -> tensor<6xf32>
  return %s, %n : tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func.func @own_parts(
// CHECK: %[[F:.*]] = dist.reduce_scatter sum over #tp %arg1 dim 0 : (tensor<8xf32>) -> !dist.future<tensor<2xf32>>
// CHECK-NEXT: %[[W:.*]] = dist.wait %[[F]]
// CHECK-NEXT: return %arg0, %[[W]]
func.func @own_parts(%x: tensor<2xf32>, %y: tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %two = arith.constant 2 : index
  %p = dist.axis_index over #tp
  %b = arith.muli %p, %two : index
  %e = arith.addi %b, %two : index
  %f = dist.all_gather over #tp %x dim 0 : (tensor<2xf32>) -> !dist.future<tensor<8xf32>>
  %r = dist.all_reduce sum over #tp %y : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  %g = dist.wait %f : !dist.future<tensor<8xf32>>
  %gs = aten.slice %g dim 0 [%b : %e : 1] : (tensor<8xf32>) -> tensor<2xf32>
  %w = dist.wait %r : !dist.future<tensor<8xf32>>
  %ws = aten.slice %w dim 0 [%b : %e : 1] : (tensor<8xf32>) -> tensor<2xf32>
  return %gs, %ws : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @replicated(
// CHECK-NOT: = dist.
// CHECK: return
func.func @replicated(%x: tensor<3xf32> {dist.global_type = tensor<3xf32>, dist.layout = #R}) -> (tensor<12xf32>, tensor<3xf32>) {
  %f = dist.all_gather over #tp %x dim 0 : (tensor<3xf32>) -> !dist.future<tensor<12xf32>>
  %r = dist.all_reduce sum over #dp %x : (tensor<3xf32>) -> !dist.future<tensor<3xf32>>
  %g = dist.wait %f : !dist.future<tensor<12xf32>>
  %w = dist.wait %r : !dist.future<tensor<3xf32>>
  return %g, %w : tensor<12xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @narrowed(
// CHECK: dist.reduce_scatter sum over #tp %arg0 dim 0 : (tensor<262144xf32>) -> !dist.future<tensor<65536xf32>>
// CHECK: aten.to_copy %{{.*}} to bf16
// CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<65536xbf16>) -> !dist.future<tensor<262144xbf16>>
func.func @narrowed(%x: tensor<262144xf32>) -> tensor<262144xbf16> {
  %f = dist.all_reduce sum over #tp %x : (tensor<262144xf32>) -> !dist.future<tensor<262144xf32>>
  %r = dist.wait %f : !dist.future<tensor<262144xf32>>
  %c = aten.to_copy %r to bf16 : (tensor<262144xf32>) -> tensor<262144xbf16>
  return %c : tensor<262144xbf16>
}

// CHECK-LABEL: func.func @average_and_chain(
// CHECK-DAG: dist.reduce_scatter avg over #tp %arg0 dim 0
// CHECK-DAG: dist.all_reduce max over #{{.*}} %arg1
// CHECK-NOT: dist.all_reduce
// CHECK: return
func.func @average_and_chain(%x: tensor<8xf16>, %y: tensor<5xf32>) -> (tensor<2xf16>, tensor<5xf32>) {
  %four = aten.constant dense<4.0> : tensor<f16>
  %f = dist.reduce_scatter sum over #tp %x dim 0 : (tensor<8xf16>) -> !dist.future<tensor<2xf16>>
  %g = dist.all_reduce max over #tp %y : (tensor<5xf32>) -> !dist.future<tensor<5xf32>>
  %s = dist.wait %f : !dist.future<tensor<2xf16>>
  %a = aten.div %s, %four : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
  %m = dist.wait %g : !dist.future<tensor<5xf32>>
  %h = dist.all_reduce max over #dp %m : (tensor<5xf32>) -> !dist.future<tensor<5xf32>>
  %n = dist.wait %h : !dist.future<tensor<5xf32>>
  return %a, %n : tensor<2xf16>, tensor<5xf32>
}

// CHECK-LABEL: func.func @commuted(
// CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<3x2xbf16>) -> !dist.future<tensor<12x2xbf16>>
// CHECK: dist.all_gather over #tp %arg1 dim 0 : (tensor<3x2xbf16>) -> !dist.future<tensor<12x2xbf16>>
// CHECK: dist.permute over #tp pairs {{\[}}[0, 2]] %arg2 : (tensor<5xf32>) -> !dist.future<tensor<5xf32>>
func.func @commuted(%x: tensor<3x2xf32>, %y: tensor<3x2xbf16>, %z: tensor<5xf32>)
    -> (tensor<12x2xbf16>, tensor<2x12xf32>, tensor<5xf32>) {
  %f = dist.all_gather over #tp %x dim 0 : (tensor<3x2xf32>) -> !dist.future<tensor<12x2xf32>>
  %g = dist.wait %f : !dist.future<tensor<12x2xf32>>
  %c = aten.to_copy %g to bf16 : (tensor<12x2xf32>) -> tensor<12x2xbf16>
  %t = aten.transpose %y [0, 1] : (tensor<3x2xbf16>) -> tensor<2x3xbf16>
  %w = aten.to_copy %t to f32 : (tensor<2x3xbf16>) -> tensor<2x3xf32>
  %h = dist.all_gather over #tp %w dim 1 : (tensor<2x3xf32>) -> !dist.future<tensor<2x12xf32>>
  %v = dist.wait %h : !dist.future<tensor<2x12xf32>>
  %p = dist.permute over #tp pairs [[0, 1], [3, 0]] %z : (tensor<5xf32>) -> !dist.future<tensor<5xf32>>
  %pw = dist.wait %p : !dist.future<tensor<5xf32>>
  %q = dist.permute over #tp pairs [[1, 2], [2, 3]] %pw : (tensor<5xf32>) -> !dist.future<tensor<5xf32>>
  %qw = dist.wait %q : !dist.future<tensor<5xf32>>
  return %c, %v, %qw : tensor<12x2xbf16>, tensor<2x12xf32>, tensor<5xf32>
}

// Of a bucket only what is new stays.
// CHECK-LABEL: func.func @duplicates(
// CHECK: dist.all_gather over #tp %arg0 dim 0
// CHECK: dist.all_gather over #tp %arg1 dim 0
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @duplicates(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = dist.all_gather over #tp %x dim 0 : (tensor<2xf32>) -> !dist.future<tensor<8xf32>>
  %b = dist.all_gather over #tp %x dim 0 : (tensor<2xf32>) -> !dist.future<tensor<8xf32>>
  %c:2 = dist.all_gather over #tp %x dim 0, %y dim 0 : (tensor<2xf32>, tensor<2xf32>) -> (!dist.future<tensor<8xf32>>, !dist.future<tensor<8xf32>>)
  %wa = dist.wait %a : !dist.future<tensor<8xf32>>
  %wb = dist.wait %b : !dist.future<tensor<8xf32>>
  %wc:2 = dist.wait %c#0, %c#1 : !dist.future<tensor<8xf32>>, !dist.future<tensor<8xf32>>
  return %wa, %wb, %wc#0, %wc#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// What no rule touches keeps its start, its wait and both places, also where one wait is for several starts, and
// one start for several waits. The sum of the third and fourth gradient moves nothing else.
// CHECK-LABEL: func.func @kept(
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce sum over #tp %arg0 {note = "kept"}
// CHECK-NEXT: %[[B:.*]]:2 = dist.all_gather over #dp %arg0 dim 0, %arg1 dim 0
// CHECK-NEXT: %[[N:.*]] = aten.neg %arg0
// CHECK-NEXT: %[[WA:.*]]:2 = dist.wait %[[A]], %[[B]]#1
// CHECK-NEXT: %[[M:.*]] = aten.neg %[[N]]
// CHECK-NEXT: %[[WB:.*]] = dist.wait %[[B]]#0
// CHECK-NEXT: %[[R:.*]] = aten.relu %[[M]]
// CHECK: return %[[WA]]#0, %[[WA]]#1, %[[WB]], %[[R]]
func.func @kept(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = dist.all_reduce sum over #tp %x {note = "kept"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %b:2 = dist.all_gather over #dp %x dim 0, %y dim 0 : (tensor<4xf32>, tensor<4xf32>) -> (!dist.future<tensor<8xf32>>, !dist.future<tensor<8xf32>>)
  %n = aten.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %wa:2 = dist.wait %a, %b#1 : !dist.future<tensor<4xf32>>, !dist.future<tensor<8xf32>>
  %m = aten.neg %n : (tensor<4xf32>) -> tensor<4xf32>
  %wb = dist.wait %b#0 : !dist.future<tensor<8xf32>>
  %r = aten.relu %m : (tensor<4xf32>) -> tensor<4xf32>
  %c = dist.all_reduce sum over #tp %r : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %d = dist.all_reduce sum over #tp %y : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %wc = dist.wait %c : !dist.future<tensor<4xf32>>
  %wd = dist.wait %d : !dist.future<tensor<4xf32>>
  %s = aten.sub %wc, %wd : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %wa#0, %wa#1, %wb, %r, %s : tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>
}

// A future that is returned is nobody's to change; neither are a pair of which it is half, sums over two groups, an
// average with a sum, a sum that is itself needed, a cast of the wide type that is not the only use.
// CHECK-LABEL: func.func @no_pairs(
// CHECK-COUNT-2: dist.all_gather over #tp
// CHECK-COUNT-5: dist.all_reduce
// CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<4xf32>) -> !dist.future<tensor<16xf32>>
func.func @no_pairs(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (!dist.future<tensor<16xf32>>, !dist.future<tensor<16xf32>>, tensor<16xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xbf16>, tensor<16xf32>) {
  %a = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> !dist.future<tensor<16xf32>>
  %b:2 = dist.all_gather over #tp %x dim 0, %y dim 0 : (tensor<4xf32>, tensor<4xf32>) -> (!dist.future<tensor<16xf32>>, !dist.future<tensor<16xf32>>)
  %wb = dist.wait %b#1 : !dist.future<tensor<16xf32>>
  %f = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %g = dist.all_reduce sum over #dp %y : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %wf, %wg = dist.wait %f, %g : !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>
  %0 = aten.add %wf, %wg : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = dist.all_reduce avg over #tp %y : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %i = dist.all_reduce max over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %wh, %wi = dist.wait %h, %i : !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>
  %1 = aten.add %wh, %wi : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = aten.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %j = dist.all_reduce sum over #tp %n : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %wj = dist.wait %j : !dist.future<tensor<4xf32>>
  %k = dist.all_gather over #tp %n dim 0 : (tensor<4xf32>) -> !dist.future<tensor<16xf32>>
  %wk = dist.wait %k : !dist.future<tensor<16xf32>>
  %c = aten.to_copy %wk to bf16 : (tensor<16xf32>) -> tensor<16xbf16>
  return %a, %b#0, %wb, %0, %1, %wj, %c, %wk : !dist.future<tensor<16xf32>>, !dist.future<tensor<16xf32>>, tensor<16xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xbf16>, tensor<16xf32>
}
