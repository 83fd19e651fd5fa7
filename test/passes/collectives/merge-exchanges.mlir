// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which exchanges become one, and what every rank computes.
// DEFINE: %{pass} = --dist-merge-exchanges
// RUN: shard-opt %{pass} %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- %{pass} | FileCheck --check-prefix=SAME %s %}
// SAME: 7 functions, 0 failures
// RUN: shard-opt %s %{pass} --dist-schedule-collectives --dist-verify-schedule --dist-verify-stage=stage=scheduled -o /dev/null
// RUN: shard-opt %s --dist-schedule-collectives %{pass} --dist-verify-schedule --dist-verify-stage=stage=scheduled | FileCheck --check-prefix=PAIRS %s
// RUN: shard-opt %s %{pass} --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS: 4 merged
// RUN: not shard-opt --dist-merge-exchanges=topology=mars %s 2>&1 | FileCheck --check-prefix=WRONG %s
// WRONG: error: topology: {{.*}}mars

#mesh = #dist.mesh<["a" = 2, "b" = 2]>
#a = #dist.axes<#mesh, ["a"]>
#b = #dist.axes<#mesh, ["b"]>

// What depends on the first one follows both.
// CHECK-LABEL: func.func @two(
// CHECK: %[[AB:.*]]:2 = dist.all_to_all over #a %arg0 split 0 concat 1, %arg1 split 0 concat 0
// CHECK: %[[S:.*]] = aten.sin %[[AB]]#0
// CHECK: aten.matmul %[[S]], %[[AB]]#1
// PAIRS-LABEL: func.func @two(
// PAIRS: %[[F:.*]]:2 = dist.all_to_all over #a {{.*}}!dist.future
// PAIRS-NOT: dist.all_to_all
// PAIRS: return
func.func @two(%x: tensor<4x6xf32>, %y: tensor<12x3xf32>) -> tensor<2x3xf32> {
  %a = dist.all_to_all over #a %x split 0 concat 1 : (tensor<4x6xf32>) -> tensor<2x12xf32>
  %s = aten.sin %a : (tensor<2x12xf32>) -> tensor<2x12xf32>
  %b = dist.all_to_all over #a %y split 0 concat 0 : (tensor<12x3xf32>) -> tensor<12x3xf32>
  %m = aten.matmul %s, %b : (tensor<2x12xf32>, tensor<12x3xf32>) -> tensor<2x3xf32>
  return %m : tensor<2x3xf32>
}

// Of several, all. Extents stay with their tensors.
// CHECK-LABEL: func.func @four(
// CHECK: dist.all_to_all over #a %arg0 split 0 extents [1, 3] concat 0 extents [%{{.*}}, %{{.*}}], %{{.*}} split 0 concat 1, %arg1 split 0 concat 0
// CHECK-NOT: dist.all_to_all
// CHECK: return
func.func @four(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) -> (tensor<?x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>) {
  %n = dist.extent #dist.extents<table [1, 1, 3, 3] over #mesh>
  %a = dist.all_to_all over #a %x split 0 extents [1, 3] concat 0 extents [%n, %n] : (tensor<4x2xf32>) -> tensor<?x2xf32>
  %e = aten.exp %y : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = dist.all_to_all over #a %e split 0 concat 1 : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %c = dist.all_to_all over #a %y split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %a, %b, %c : tensor<?x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>
}

// One that needs the other stays behind it.
// CHECK-LABEL: func.func @dependent(
// CHECK-COUNT-2: dist.all_to_all
func.func @dependent(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %a = dist.all_to_all over #a %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %s = aten.sin %a : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = dist.all_to_all over #a %s split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %b : tensor<4x2xf32>
}

// Other ranks, or another element type.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-3: dist.all_to_all
func.func @others(%x: tensor<4x2xf32>, %y: tensor<4x2xf64>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf64>) {
  %a = dist.all_to_all over #a %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = dist.all_to_all over #b %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %c = dist.all_to_all over #a %y split 0 concat 0 : (tensor<4x2xf64>) -> tensor<4x2xf64>
  return %a, %b, %c : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf64>
}

// The first one does not wait for a product that takes longer than an exchange.
// CHECK-LABEL: func.func @long(
// CHECK: dist.all_to_all
// CHECK: aten.matmul
// CHECK: dist.all_to_all
func.func @long(%x: tensor<4x2xf32>, %y: tensor<512x512xf32>) -> (tensor<4x2xf32>, tensor<512x512xf32>) {
  %a = dist.all_to_all over #a %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %m = aten.matmul %y, %y : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = dist.all_to_all over #a %m split 0 concat 0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  return %a, %b : tensor<4x2xf32>, tensor<512x512xf32>
}

// Nor for another collective.
// CHECK-LABEL: func.func @collective_between(
// CHECK: dist.all_to_all
// CHECK: dist.all_reduce
// CHECK: dist.all_to_all
func.func @collective_between(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %a = dist.all_to_all over #a %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = dist.all_reduce sum over #a %y : tensor<4x2xf32>
  %b = dist.all_to_all over #a %r split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %a, %b : tensor<4x2xf32>, tensor<4x2xf32>
}

// A collective that depends on the first one follows, too.
// CHECK-LABEL: func.func @collective_behind(
// CHECK: %[[AB:.*]]:2 = dist.all_to_all
// CHECK: dist.all_reduce sum over #b %[[AB]]#0
func.func @collective_behind(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %a = dist.all_to_all over #a %x split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = dist.all_reduce sum over #b %a : tensor<4x2xf32>
  %b = dist.all_to_all over #a %y split 0 concat 0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r, %b : tensor<4x2xf32>, tensor<4x2xf32>
}
