// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-bucket-collectives=memory-limit=1000000 --dist-verify-schedule %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 0 -- --dist-bucket-collectives=memory-limit=1000000 %}

// What depends on each other shares no bucket, directly or through other buckets (B3), and finds another (B4).

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>

// A chain: none may join another.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-3: dist.all_reduce max over #tp %{{[^,]*}} {
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce max over #tp %x : tensor<4xf32>
  %1 = aten.sin %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = dist.all_reduce max over #tp %1 : tensor<4xf32>
  %3 = aten.sin %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = dist.all_reduce max over #tp %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// Two chains side by side: the first of each together, then the second of each. Nobody is lost.
// CHECK-LABEL: func.func @two_chains(
// CHECK: dist.all_reduce max over #tp %arg0, %arg1 {
// CHECK: dist.all_reduce max over #tp %{{.*}}, %{{.*}} {
// CHECK-NOT: dist.all_reduce
func.func @two_chains(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
  %0 = dist.all_reduce max over #tp %x : tensor<4xf32>
  %1 = dist.all_reduce max over #tp %y : tensor<5xf32>
  %2 = aten.sin %0 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = aten.sin %1 : (tensor<5xf32>) -> tensor<5xf32>
  %4 = dist.all_reduce max over #tp %2 : tensor<4xf32>
  %5 = dist.all_reduce max over #tp %3 : tensor<5xf32>
  return %4, %5 : tensor<4xf32>, tensor<5xf32>
}

// a1 -> b1 and b2 -> a2, of two kinds: {a1, a2} and {b1, b2} would wait for each other. One pair may be merged.
// CHECK-LABEL: func.func @cycle_of_two(
// CHECK-NEXT: {{.*}} = dist.all_gather over #tp %arg0 dim 0 {dist.alone
// CHECK-NEXT: {{.*}} = aten.sin
// CHECK-NEXT: {{.*}} = dist.all_reduce max over #tp %{{.*}}, %arg1 {dist.bucket
// CHECK-NEXT: {{.*}} = aten.sin
// CHECK-NEXT: {{.*}} = dist.all_gather over #tp %{{.*}} dim 0 {dist.alone
func.func @cycle_of_two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a1 = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %s1 = aten.sin %a1 : (tensor<8xf32>) -> tensor<8xf32>
  %b1 = dist.all_reduce max over #tp %s1 : tensor<8xf32>
  %b2 = dist.all_reduce max over #tp %y : tensor<4xf32>
  %s2 = aten.sin %b2 : (tensor<4xf32>) -> tensor<4xf32>
  %a2 = dist.all_gather over #tp %s2 dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  return %b1, %a2 : tensor<8xf32>, tensor<8xf32>
}

// a1 -> b1, b2 -> c1, c2 -> a2, over two groups and three kinds: two pairs at most.
// CHECK-LABEL: func.func @cycle_of_three(
// CHECK-NEXT: {{.*}} = dist.all_gather over #tp %arg0 dim 0 {dist.alone
// CHECK-NEXT: {{.*}} = aten.sin
// CHECK-NEXT: {{.*}} = dist.all_reduce max over #dp %{{.*}}, %arg1 {dist.bucket
// CHECK-NEXT: {{.*}} = aten.sin
// CHECK-NEXT: {{.*}} = dist.reduce_scatter max over #tp %{{.*}} dim 0, %arg2 dim 0 {dist.bucket
// CHECK-NEXT: {{.*}} = aten.sin
// CHECK-NEXT: {{.*}} = dist.all_gather over #tp %{{.*}} dim 0 {dist.alone
func.func @cycle_of_three(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<8xf32>, tensor<2xf32>, tensor<4xf32>) {
  %a1 = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  %s1 = aten.sin %a1 : (tensor<8xf32>) -> tensor<8xf32>
  %b1 = dist.all_reduce max over #dp %s1 : tensor<8xf32>
  %b2 = dist.all_reduce max over #dp %y : tensor<4xf32>
  %s2 = aten.sin %b2 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = dist.reduce_scatter max over #tp %s2 dim 0 : (tensor<4xf32>) -> tensor<2xf32>
  %c2 = dist.reduce_scatter max over #tp %z dim 0 : (tensor<4xf32>) -> tensor<2xf32>
  %s3 = aten.sin %c2 : (tensor<2xf32>) -> tensor<2xf32>
  %a2 = dist.all_gather over #tp %s3 dim 0 : (tensor<2xf32>) -> tensor<4xf32>
  return %b1, %c1, %a2 : tensor<8xf32>, tensor<2xf32>, tensor<4xf32>
}
