// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-bucket-collectives="scale-half memory-limit=1000000" %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 3e-3 -- "--dist-bucket-collectives=scale-half memory-limit=1000000" %}
// RUN: shard-opt --dist-bucket-collectives="scale-half memory-limit=1000000" --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// RUN: shard-opt --dist-schedule-collectives="bucket scale-half memory-limit=1000000" %s | FileCheck --check-prefix=SCHEDULED %s

// Averages of f16 as sums between two scalings (B5): a power of two before, the rest after.

// STATS-DAG: 4 scaled

#mesh = #dist.mesh<["dp" = 8]>
#dp = #dist.axes<#mesh, ["dp"]>
#three = #dist.groups<[[0, 3, 5], [1, 2, 4]]>

// Eight ranks: by 4, then by 2; in one bucket.
// CHECK-LABEL: func.func @eight(
// CHECK-NEXT: %[[FOUR:.*]] = aten.constant dense<4.000000e+00> : tensor<f16>
// CHECK-NEXT: %[[A:.*]] = aten.div %arg0, %[[FOUR]] : (tensor<5xf16>, tensor<f16>) -> tensor<5xf16>
// CHECK: %[[B:.*]] = aten.div %arg1, %{{.*}} : (tensor<16xf16>, tensor<f16>) -> tensor<16xf16>
// CHECK: %[[R:.*]]:2 = dist.all_reduce sum over #dp %[[A]], %[[B]] {dist.bucket
// CHECK-DAG: aten.constant dense<2.000000e+00> : tensor<f16>
// CHECK-DAG: aten.div %[[R]]#0
// CHECK-DAG: aten.div %[[R]]#1
// SCHEDULED-LABEL: func.func @eight(
// SCHEDULED: dist.all_reduce sum over #dp {{.*}} -> (!dist.future<tensor<5xf16>>, !dist.future<tensor<16xf16>>)
func.func @eight(%a: tensor<5xf16>, %b: tensor<16xf16>) -> (tensor<5xf16>, tensor<16xf16>) {
  %0 = dist.all_reduce avg over #dp %a : tensor<5xf16>
  %1 = dist.all_reduce avg over #dp %b : tensor<16xf16>
  return %0, %1 : tensor<5xf16>, tensor<16xf16>
}

// Three ranks: by 2, then by one and a half. What is in flight is divided where it has been waited for.
// CHECK-LABEL: func.func @three(
// CHECK: aten.constant dense<2.000000e+00> : tensor<f16>
// CHECK: %[[F:.*]] = dist.reduce_scatter sum over #{{.*}} dim 0{{.*}} -> !dist.future<tensor<2xf16>>
// CHECK: %[[W:.*]] = dist.wait %[[F]]
// CHECK: %[[C:.*]] = aten.constant dense<1.500000e+00> : tensor<f16>
// CHECK: %[[D:.*]] = aten.div %[[W]], %[[C]]
// CHECK: aten.relu %[[D]]
func.func @three(%a: tensor<6xf16>) -> tensor<2xf16> {
  %f = dist.reduce_scatter avg over #three %a dim 0 : (tensor<6xf16>) -> !dist.future<tensor<2xf16>>
  %w = dist.wait %f : !dist.future<tensor<2xf16>>
  %r = aten.relu %w : (tensor<2xf16>) -> tensor<2xf16>
  return %r : tensor<2xf16>
}

// A bucket already, of two ranks: all of the division comes before.
// CHECK-LABEL: func.func @bucket(
// CHECK-COUNT-2: aten.div
// CHECK: dist.all_reduce sum over
// CHECK-NEXT: return
func.func @bucket(%a: tensor<4xf16>, %b: tensor<3xf16>) -> (tensor<4xf16>, tensor<3xf16>) {
  %0:2 = dist.all_reduce avg over #dist.groups<[[0, 1]]> %a, %b : tensor<4xf16>, tensor<3xf16>
  return %0#0, %0#1 : tensor<4xf16>, tensor<3xf16>
}

// A sum, a maximum, types with the range of f32, and what is returned in flight.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: aten.div
// CHECK: return
func.func @others(%a: tensor<4xf16>, %b: tensor<4xbf16>, %c: tensor<4xf32>)
    -> (tensor<4xf16>, tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>, !dist.future<tensor<4xf16>>) {
  %0 = dist.all_reduce sum over #dp %a : tensor<4xf16>
  %1 = dist.all_reduce max over #dp %a : tensor<4xf16>
  %2 = dist.all_reduce avg over #dp %b : tensor<4xbf16>
  %3 = dist.all_reduce avg over #dp %c : tensor<4xf32>
  %4 = dist.all_reduce avg over #dp %a : (tensor<4xf16>) -> !dist.future<tensor<4xf16>>
  return %0, %1, %2, %3, %4 : tensor<4xf16>, tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>, !dist.future<tensor<4xf16>>
}
