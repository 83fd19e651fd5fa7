// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stays one collective, whatever it costs: on nodes of two ranks, only the last function has one that can be split.
// DEFINE: %{pass} = --dist-split-nodes="mode=all topology=%S/Inputs/pairs.target"
// RUN: shard-opt %{pass} %s | FileCheck %s
// RUN: shard-opt %{pass} --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS-DAG: 1 gathers
// STATS-DAG: 5 indivisible
// STATS-DAG: 3 inexact
// STATS-DAG: 2 one-node
// STATS-DAG: 2 symbolic
// STATS-DAG: 4 unequal
// STATS-DAG: 1 unknown
// STATS-NOT: reduces
// On one node of 1024 ranks nothing is to be split, and with mode=off nothing is looked at.
// RUN: shard-opt --dist-split-nodes="mode=all topology=cpu-local" --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=LOCAL %s
// RUN: shard-opt --dist-split-nodes="mode=off topology=sim-v1" --pass-statistics %s -o /dev/null 2>&1 | count 0
// LOCAL-NOT: gathers
// LOCAL: 18 one-node
// LOCAL-NOT: gathers
// RUN: not shard-opt --dist-split-nodes="mode=some topology=mars memory-limit=much caps=big" %s 2>&1 | FileCheck --check-prefix=MODE %s
// RUN: not shard-opt --dist-split-nodes="topology=mars memory-limit=much caps=big" %s 2>&1 | FileCheck --check-prefix=WRONG %s
// RUN: not shard-opt --dist-split-nodes="mode=all topology=sim-v1" %s 2>&1 | FileCheck --check-prefix=NODES %s
// MODE: error: mode: 'some' is neither off, auto nor all
// WRONG: error: bucket cap 'big'
// WRONG: error: topology: no target named 'mars'
// WRONG: error: memory-limit: 'much'
// NODES: error: topology: the cost model 'sim-v1' says nothing of nodes: choose a topology that does, such as h100-64 or a target description with ranks_per_node

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#tp = #dist.axes<#mesh, ["tp"]>
#all = #dist.axes<#mesh, ["dp", "tp"]>
#line = #dist.mesh<["n" = 4]>
#n = #dist.axes<#line, ["n"]>

// Both ranks on one node, and one rank on each of two.
// CHECK-LABEL: func.func @one_node(
// CHECK-COUNT-2: dist.all_reduce
// CHECK-NOT: dist.
// CHECK: return
func.func @one_node(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = dist.all_reduce sum over #tp %x : tensor<8xf32>
  %z = dist.all_reduce sum over #dp %y : tensor<8xf32>
  return %z : tensor<8xf32>
}

// Three ranks, 2 + 1; two groups of which one is 2 + 1 + 1; positions in no order of nodes; groups in orders of their own.
// CHECK-LABEL: func.func @unequal(
// CHECK: dist.all_reduce
// CHECK: dist.all_reduce
// CHECK: dist.all_gather
// CHECK: dist.all_gather
// CHECK-NOT: dist.
// CHECK: return
func.func @unequal(%x: tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>, tensor<48xf32>, tensor<48xf32>) {
  %a = dist.all_reduce sum over #dist.groups<[[0, 1, 2]]> %x : tensor<12xf32>
  %b = dist.all_reduce sum over #dist.groups<[[0, 1, 2, 3], [4, 5, 8, 6]]> %x : tensor<12xf32>
  %c = dist.all_gather over #dist.groups<[[0, 2, 3, 1]]> %x dim 0 : (tensor<12xf32>) -> tensor<48xf32>
  %d = dist.all_gather over #dist.groups<[[0, 1, 2, 3], [4, 6, 5, 7]]> %x dim 0 : (tensor<12xf32>) -> tensor<48xf32>
  return %a, %b, %c, %d : tensor<12xf32>, tensor<12xf32>, tensor<48xf32>, tensor<48xf32>
}

// An odd number of elements, also beside others; unequal shares; nothing at all; a number.
// CHECK-LABEL: func.func @indivisible(
// CHECK: dist.all_reduce
// CHECK: dist.all_reduce
// CHECK: dist.all_gather
// CHECK: dist.all_reduce
// CHECK: dist.all_reduce
// CHECK-NOT: dist.
// CHECK: return
func.func @indivisible(%x: tensor<3x5xf32>, %y: tensor<4xf32>, %z: tensor<0x3xf32>, %s: tensor<f32>)
    -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<4xf32>, tensor<10x5xf32>, tensor<0x3xf32>, tensor<f32>) {
  %a = dist.all_reduce sum over #n %x : tensor<3x5xf32>
  %b:2 = dist.all_reduce sum over #n %x, %y : tensor<3x5xf32>, tensor<4xf32>
  %c = dist.all_gather over #n %x dim 0 extents [3, 3, 3, 1] : (tensor<3x5xf32>) -> tensor<10x5xf32>
  %e = dist.all_reduce sum over #n %z : tensor<0x3xf32>
  %f = dist.all_reduce sum over #n %s : tensor<f32>
  return %a, %b#0, %b#1, %c, %e, %f : tensor<3x5xf32>, tensor<3x5xf32>, tensor<4xf32>, tensor<10x5xf32>, tensor<0x3xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @symbolic(
// CHECK: dist.all_reduce
// CHECK: dist.all_gather
// CHECK-NOT: dist.
// CHECK: return
func.func @symbolic(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<14x4xf32>) {
  %a = dist.all_reduce sum over #n %x : tensor<?x4xf32>
  %b = dist.all_gather over #n %x dim 0 : (tensor<?x4xf32>) -> tensor<14x4xf32>
  return %a, %b : tensor<?x4xf32>, tensor<14x4xf32>
}

// Sums within a node could overflow, or an average be cut twice.
// CHECK-LABEL: func.func @inexact(
// CHECK: dist.all_reduce sum
// CHECK: dist.reduce_scatter prod
// CHECK: dist.all_reduce avg
// CHECK-NOT: dist.
// CHECK: return
func.func @inexact(%x: tensor<8xf16>, %y: tensor<8xi32>) -> (tensor<8xf16>, tensor<2xf16>, tensor<8xi32>) {
  %a = dist.all_reduce sum over #n %x : tensor<8xf16>
  %b = dist.reduce_scatter prod over #n %x dim 0 : (tensor<8xf16>) -> tensor<2xf16>
  %c = dist.all_reduce avg over #n %y : tensor<8xi32>
  return %a, %b, %c : tensor<8xf16>, tensor<2xf16>, tensor<8xi32>
}

// CHECK-LABEL: func.func @unknown(
// CHECK: dist.all_reduce
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func @unknown(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = dist.all_reduce sum over #dist.named_group<"0", 4> %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// Other kinds, and a future that is returned.
// CHECK-LABEL: func.func @others(
// CHECK: dist.all_to_all
// CHECK: dist.broadcast
// CHECK: dist.all_reduce
// CHECK-NOT: dist.reduce_scatter
// CHECK: return
func.func @others(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, !dist.future<tensor<8xf32>>) {
  %a = dist.all_to_all over #n %x split 0 concat 0 : (tensor<8xf32>) -> tensor<8xf32>
  %b = dist.broadcast over #n from 1 %x : tensor<8xf32>
  %f = dist.all_reduce sum over #n %x : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  return %a, %b, %f : tensor<8xf32>, tensor<8xf32>, !dist.future<tensor<8xf32>>
}

// f16 that is only moved.
// CHECK-LABEL: func.func @splits(
// CHECK-COUNT-2: dist.all_gather
func.func @splits(%x: tensor<8xf16>) -> tensor<32xf16> {
  %y = dist.all_gather over #all %x dim 0 : (tensor<8xf16>) -> tensor<32xf16>
  return %y : tensor<32xf16>
}
