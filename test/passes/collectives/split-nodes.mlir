// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each kind on nodes of two ranks, whatever it costs.
// DEFINE: %{pass} = --dist-split-nodes="mode=all topology=%S/Inputs/pairs.target"
// RUN: shard-opt %{pass} %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- %{pass} %}
// RUN: shard-opt %{pass} --dist-schedule-collectives=topology=%S/Inputs/pairs.target --dist-verify-schedule --dist-verify-stage=stage=scheduled %s -o /dev/null
// RUN: shard-opt %{pass} --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS-DAG: 5 gathers
// STATS-DAG: 10 reduces
// RUN: shard-opt --dist-split-nodes="mode=all topology=%S/Inputs/pairs.target remarks" %s -o /dev/null 2>&1 | FileCheck --check-prefix=REMARKS %s
// REMARKS: split-nodes.mlir:{{[0-9]+}}:{{.*}} remark: within 2 nodes of 2 ranks, and between them

#line = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#line, ["dp"]>
#square = #dist.mesh<["node" = 2, "gpu" = 2]>
#all = #dist.axes<#square, ["node", "gpu"]>
#turned = #dist.axes<#square, ["gpu", "node"]>
#cube = #dist.mesh<["dp" = 4, "tp" = 2]>
#eight = #dist.axes<#cube, ["dp", "tp"]>

// CHECK-DAG: #[[W:group[0-9]*]] = #dist.groups<{{\[\[}}0, 1], [2, 3]]>
// CHECK-DAG: #[[B:group[0-9]*]] = #dist.groups<{{\[\[}}0, 2], [1, 3]]>
// CHECK-DAG: #[[B8:group[0-9]*]] = #dist.groups<{{\[\[}}0, 4], [1, 5], [2, 6], [3, 7]]>
// CHECK-DAG: #[[W8:group[0-9]*]] = #dist.groups<{{\[\[}}0, 1], [2, 3], [4, 5], [6, 7]]>
// CHECK-DAG: #[[WM:group[0-9]*]] = #dist.groups<{{\[\[}}0, 1], [3, 2]]>
// CHECK-DAG: #[[BM:group[0-9]*]] = #dist.groups<{{\[\[}}0, 3], [1, 2]]>

// CHECK-LABEL: func.func @all_reduce(
// CHECK: %[[S:.*]] = dist.reduce_scatter sum over #[[W]] %arg0 dim 0 : (tensor<6x5xf32>) -> tensor<3x5xf32>
// CHECK: %[[R:.*]] = dist.all_reduce sum over #[[B]] %[[S]] : tensor<3x5xf32>
// CHECK: %[[G:.*]] = dist.all_gather over #[[W]] %[[R]] dim 0 : (tensor<3x5xf32>) -> tensor<6x5xf32>
// CHECK: return %[[G]]
func.func @all_reduce(%x: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %y = dist.all_reduce sum over #dp %x : tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// Three rows have no halves, 12 elements have.
// CHECK-LABEL: func.func @flat_view(
// CHECK: %[[V:.*]] = aten.view %arg0 [12]
// CHECK: dist.reduce_scatter avg over {{.*}} %[[V]] dim 0 : (tensor<12xf32>) -> tensor<6xf32>
// CHECK: dist.all_reduce avg
// CHECK: %[[G:.*]] = dist.all_gather
// CHECK: %[[W:.*]] = aten.view %[[G]] [3, 4]
// CHECK: return %[[W]]
func.func @flat_view(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = dist.all_reduce avg over #dp %x : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Mesh axes stay mesh axes. Positions go by node: blocks are columns.
// CHECK-LABEL: func.func @gather_by_node(
// CHECK: %[[B:.*]] = dist.all_gather over #node %arg0 dim 1 : (tensor<2x3x5xf32>) -> tensor<2x6x5xf32>
// CHECK: %[[V:.*]] = aten.view %[[B]] [4, 15]
// CHECK: %[[W:.*]] = dist.all_gather over #gpu %[[V]] dim 1 : (tensor<4x15xf32>) -> tensor<4x30xf32>
// CHECK: %[[R:.*]] = aten.view %[[W]] [2, 12, 5]
// CHECK: return %[[R]]
func.func @gather_by_node(%x: tensor<2x3x5xf32>) -> tensor<2x12x5xf32> {
  %y = dist.all_gather over #all %x dim 1 : (tensor<2x3x5xf32>) -> tensor<2x12x5xf32>
  return %y : tensor<2x12x5xf32>
}

// CHECK-LABEL: func.func @scatter_by_node(
// CHECK: %[[V:.*]] = aten.view %arg0 [4, 30]
// CHECK: %[[W:.*]] = dist.reduce_scatter sum over #gpu %[[V]] dim 1 : (tensor<4x30xf32>) -> tensor<4x15xf32>
// CHECK: %[[U:.*]] = aten.view %[[W]] [2, 6, 5]
// CHECK: %[[R:.*]] = dist.reduce_scatter sum over #node %[[U]] dim 1 : (tensor<2x6x5xf32>) -> tensor<2x3x5xf32>
// CHECK: return %[[R]]
func.func @scatter_by_node(%x: tensor<2x12x5xf32>) -> tensor<2x3x5xf32> {
  %y = dist.reduce_scatter sum over #all %x dim 1 : (tensor<2x12x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// Nodes alternate: no view.
// CHECK-LABEL: func.func @gather_by_place(
// CHECK: %[[B:.*]] = dist.all_gather over #node %arg0 dim 0 : (tensor<3x5xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: %[[W:.*]] = dist.all_gather over #gpu %[[B]] dim 0 : (tensor<6x5xf32>) -> tensor<12x5xf32>
// CHECK-NEXT: return %[[W]]
func.func @gather_by_place(%x: tensor<3x5xf32>) -> tensor<12x5xf32> {
  %y = dist.all_gather over #turned %x dim 0 : (tensor<3x5xf32>) -> tensor<12x5xf32>
  return %y : tensor<12x5xf32>
}

// CHECK-LABEL: func.func @scatter_by_place(
// CHECK: %[[W:.*]] = dist.reduce_scatter max over #gpu %arg0 dim 1 : (tensor<3x12xf32>) -> tensor<3x6xf32>
// CHECK-NEXT: %[[R:.*]] = dist.reduce_scatter max over #node %[[W]] dim 1 : (tensor<3x6xf32>) -> tensor<3x3xf32>
// CHECK-NEXT: return %[[R]]
func.func @scatter_by_place(%x: tensor<3x12xf32>) -> tensor<3x3xf32> {
  %y = dist.reduce_scatter max over #turned %x dim 1 : (tensor<3x12xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// Several tensors, one collective.
// CHECK-LABEL: func.func @bucket(
// CHECK: dist.reduce_scatter sum over {{.*}} %arg0 dim 0, %{{.*}} dim 0
// CHECK: dist.all_reduce sum over {{.*}}, %
// CHECK: dist.all_gather over {{.*}} dim 0, %{{.*}} dim 0
func.func @bucket(%a: tensor<4xf32>, %b: tensor<3x2xf32>) -> (tensor<4xf32>, tensor<3x2xf32>) {
  %y:2 = dist.all_reduce sum over #dp %a, %b : tensor<4xf32>, tensor<3x2xf32>
  return %y#0, %y#1 : tensor<4xf32>, tensor<3x2xf32>
}

// CHECK-LABEL: func.func @buckets_of_dims(
// CHECK: dist.all_gather over {{.*}} %arg0 dim 0, %arg1 dim 1
// CHECK: dist.all_gather over {{.*}} dim 1, %{{.*}} dim 1
// CHECK: dist.reduce_scatter sum over {{.*}} dim 1 :
// CHECK: dist.reduce_scatter sum over {{.*}} dim 0 :
// CHECK: dist.reduce_scatter max over {{.*}} dim 1 :
// CHECK: dist.reduce_scatter max over {{.*}} dim 1 :
func.func @buckets_of_dims(%a: tensor<1x4xf32>, %b: tensor<3x2xbf16>) -> (tensor<1x4xf32>, tensor<3x2xbf16>) {
  %g:2 = dist.all_gather over #dp %a dim 0, %b dim 1 : (tensor<1x4xf32>, tensor<3x2xbf16>) -> (tensor<4x4xf32>, tensor<3x8xbf16>)
  %h = aten.mul %g#1, %g#1 : (tensor<3x8xbf16>, tensor<3x8xbf16>) -> tensor<3x8xbf16>
  %y = dist.reduce_scatter sum over #dp %g#0 dim 0 : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %z = dist.reduce_scatter max over #dp %h dim 1 : (tensor<3x8xbf16>) -> tensor<3x2xbf16>
  return %y, %z : tensor<1x4xf32>, tensor<3x2xbf16>
}

// Four nodes of two.
// CHECK-LABEL: func.func @eight(
// CHECK: dist.reduce_scatter prod over #tp %
// CHECK: dist.all_reduce prod over #dp %
// CHECK: dist.all_gather over #tp %
// CHECK: dist.all_gather over #dp %
// CHECK: dist.all_gather over #tp %
func.func @eight(%x: tensor<6x5xf32>, %z: tensor<3x5xi64>) -> (tensor<6x5xf32>, tensor<24x5xi64>) {
  %y = dist.all_reduce prod over #eight %x : tensor<6x5xf32>
  %g = dist.all_gather over #eight %z dim 0 : (tensor<3x5xi64>) -> tensor<24x5xi64>
  return %y, %g : tensor<6x5xf32>, tensor<24x5xi64>
}

// Two groups at once, each over two nodes, in an order of their own.
// CHECK-LABEL: func.func @lists(
// CHECK: dist.all_gather over #[[B8]] %arg0 dim 0
// CHECK: dist.all_gather over #[[W8]] %
func.func @lists(%x: tensor<2xf32>) -> tensor<8xf32> {
  %y = dist.all_gather over #dist.groups<[[0, 1, 4, 5], [2, 3, 6, 7]]> %x dim 0 : (tensor<2xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// A reduction does not care in what order positions are on nodes.
// CHECK-LABEL: func.func @mixed_order(
// CHECK: dist.reduce_scatter sum over #[[WM]]
// CHECK: dist.all_reduce sum over #[[BM]]
func.func @mixed_order(%x: tensor<2xi32>) -> tensor<2xi32> {
  %y = dist.all_reduce sum over #dist.groups<[[0, 3, 2, 1]]> %x : tensor<2xi32>
  return %y : tensor<2xi32>
}

// In flight: starts and waits again.
// CHECK-LABEL: func.func @in_flight(
// CHECK: %[[S:.*]] = dist.reduce_scatter sum over {{.*}} -> !dist.future<tensor<4xf32>>
// CHECK: dist.wait %[[S]]
// CHECK: %[[R:.*]] = dist.all_reduce sum
// CHECK: dist.wait %[[R]]
// CHECK: %[[G:.*]] = dist.all_gather over
// CHECK: aten.neg
// CHECK: dist.wait %[[G]]
func.func @in_flight(%x: tensor<8xf32>) -> tensor<8xf32> {
  %f = dist.all_reduce sum over #dp %x : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  %n = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  %y = dist.wait %f : !dist.future<tensor<8xf32>>
  %z = aten.add %y, %n : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
