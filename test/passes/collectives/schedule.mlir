// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-schedule-collectives --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s
// RUN: shard-opt --dist-schedule-collectives="reorder=false" --dist-verify-stage=scheduled %s | FileCheck --check-prefix=PLAIN %s
// RUN: shard-opt --dist-schedule-collectives="bucket memory-limit=1000000000" --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck --check-prefix=BUCKET %s
// RUN: shard-opt --dist-schedule-collectives="bucket memory-limit=1000000000" %s -o %t.1
// RUN: shard-opt --dist-schedule-collectives="bucket memory-limit=1000000000" %s -o %t.2
// RUN: cmp %t.1 %t.2
// RUN: shard-opt --dist-schedule-collectives="memory-limit=1000000000" --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck --check-prefix=LATE %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 0 -- --dist-schedule-collectives=bucket %}

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// Starts early, waits late: the gather runs under the product. Without moving anything, the wait is behind the start.
// CHECK-LABEL: func.func @overlap(
// CHECK-SAME: dist.predicted = {exposed_before_us =
// CHECK-NEXT: %[[F:.*]] = dist.all_gather over #dp %arg2 dim 0 {dist.alone{{.*}}} : (tensor<256x1024xf32>) -> !dist.future<tensor<1024x1024xf32>>
// CHECK-NEXT: %[[Y:.*]] = aten.linear %arg0, %arg1
// CHECK-NEXT: %[[W:.*]] = dist.wait %[[F]]
// CHECK-NEXT: aten.linear %[[Y]], %[[W]]
// PLAIN-LABEL: func.func @overlap(
// PLAIN-NEXT: aten.linear
// PLAIN-NEXT: %[[F:.*]] = dist.all_gather over #dp
// PLAIN-NEXT: dist.wait %[[F]]
// PLAIN-NEXT: aten.linear
func.func @overlap(%x: tensor<8x1024xf32>, %w: tensor<1024x1024xf32>, %s: tensor<256x1024xf32>) -> tensor<8x1024xf32> {
  %y = aten.linear %x, %w : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
  %g = dist.all_gather over #dp %s dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %z = aten.linear %y, %g : (tensor<8x1024xf32>, tensor<1024x1024xf32>) -> tensor<8x1024xf32>
  return %z : tensor<8x1024xf32>
}

// Small gathers are all latency, far more than the first product takes: they share a bucket.
// BUCKET-LABEL: func.func @latency(
// BUCKET: %[[F:.*]]:3 = dist.all_gather over #dp %arg1 dim 0, %arg2 dim 0, %arg3 dim 0 {dist.bucket
// BUCKET: dist.wait %[[F]]#0, %[[F]]#1, %[[F]]#2
func.func @latency(%x: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<2x8xf32>, %c: tensor<2x8xf32>) -> tensor<8x8xf32> {
  %wa = dist.all_gather over #dp %a dim 0 : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %0 = aten.linear %x, %wa : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %wb = dist.all_gather over #dp %b dim 0 : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = aten.linear %0, %wb : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %wc = dist.all_gather over #dp %c dim 0 : (tensor<2x8xf32>) -> tensor<8x8xf32>
  %2 = aten.linear %1, %wc : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// All gathers have long ended, by the cost model, when the first product has. Their operands are parameters, so that a wait frees
// nothing: it stands at the first use, wherever the real link is slower.
// LATE-LABEL: func.func @late(
// LATE-DAG: %[[FA:.*]] = dist.all_gather over #dp %arg1
// LATE-DAG: %[[FB:.*]] = dist.all_gather over #dp %arg2
// LATE-DAG: %[[FC:.*]] = dist.all_gather over #dp %arg3
// LATE: %[[A:.*]] = dist.wait %[[FA]]
// LATE-NEXT: %[[Y:.*]] = aten.linear %arg0, %[[A]]
// LATE-NEXT: %[[B:.*]] = dist.wait %[[FB]]
// LATE-NEXT: %[[Z:.*]] = aten.linear %[[Y]], %[[B]]
// LATE-NEXT: %[[C:.*]] = dist.wait %[[FC]]
// LATE-NEXT: aten.linear %[[Z]], %[[C]]
func.func @late(%x: tensor<8192x1024xf32>, %a: tensor<256x1024xf32>, %b: tensor<256x1024xf32>, %c: tensor<256x1024xf32>) -> tensor<8192x1024xf32> {
  %wa = dist.all_gather over #dp %a dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %0 = aten.linear %x, %wa : (tensor<8192x1024xf32>, tensor<1024x1024xf32>) -> tensor<8192x1024xf32>
  %wb = dist.all_gather over #dp %b dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %1 = aten.linear %0, %wb : (tensor<8192x1024xf32>, tensor<1024x1024xf32>) -> tensor<8192x1024xf32>
  %wc = dist.all_gather over #dp %c dim 0 : (tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %2 = aten.linear %1, %wc : (tensor<8192x1024xf32>, tensor<1024x1024xf32>) -> tensor<8192x1024xf32>
  return %2 : tensor<8192x1024xf32>
}

// What comes asynchronous already stays so: waits of several collectives at once, a future that is returned, one from
// outside.
// CHECK-LABEL: func.func @in_flight(
// CHECK-DAG: dist.wait %arg2
// CHECK-DAG: %[[R:.*]] = dist.all_reduce sum over #dp %arg1{{.*}}!dist.future
// CHECK: return %{{.*}}, %{{.*}}, %[[R]]
func.func @in_flight(%x: tensor<2xf32>, %y: tensor<2xf32>, %f: !dist.future<tensor<2xf32>>) -> (tensor<8xf32>, tensor<2xf32>, !dist.future<tensor<2xf32>>) {
  %a = dist.all_gather over #dp %x dim 0 : (tensor<2xf32>) -> !dist.future<tensor<8xf32>>
  %b = dist.all_reduce max over #dp %y : (tensor<2xf32>) -> !dist.future<tensor<2xf32>>
  %c = dist.all_reduce sum over #dp %y : (tensor<2xf32>) -> !dist.future<tensor<2xf32>>
  %wa, %wb, %wf = dist.wait %a, %b, %f : !dist.future<tensor<8xf32>>, !dist.future<tensor<2xf32>>, !dist.future<tensor<2xf32>>
  %s = aten.add %wb, %wf : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %wa, %s, %c : tensor<8xf32>, tensor<2xf32>, !dist.future<tensor<2xf32>>
}
