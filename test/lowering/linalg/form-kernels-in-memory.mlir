// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --split-input-file | FileCheck %s

// What a gather reads at computed positions, and the positions, exist in memory: the mask is read on both sides of the
// gather, but the positions come from the first kernel, so it cannot be the second one, too.
// CHECK-LABEL: func.func @through_a_view(
// CHECK: %[[FIRST:.*]]:2 = call @[[A:ne_where_kernel]](
// CHECK: %[[AT:.*]] = aten.unsqueeze %[[FIRST]]#1
// CHECK: call @[[B:gather[a-z_]*_kernel]](%arg2, %[[AT]], %[[FIRST]]#0
// CHECK: func.func private @[[A]](
// CHECK-NOT: aten.gather
// CHECK: func.func private @[[B]](
// CHECK: aten.gather %arg0 dim 1 at %arg1
// CHECK-NOT: aten.ne
func.func @through_a_view(%ids: tensor<21xi64>, %ignored: tensor<i64>, %p: tensor<21x13xf32>, %zero: tensor<f32>) -> tensor<21xf32> {
  %0 = aten.ne %ids, %ignored : (tensor<21xi64>, tensor<i64>) -> tensor<21xi1>
  %1 = aten.where %0, %ids, %ignored : (tensor<21xi1>, tensor<21xi64>, tensor<i64>) -> tensor<21xi64>
  %2 = aten.unsqueeze %1 dim 1 : (tensor<21xi64>) -> tensor<21x1xi64>
  %3 = aten.gather %p dim 1 at %2 : (tensor<21x13xf32>, tensor<21x1xi64>) -> tensor<21x1xf32>
  %4 = aten.squeeze %3 dim [1] : (tensor<21x1xf32>) -> tensor<21xf32>
  %5 = aten.where %0, %4, %zero : (tensor<21xi1>, tensor<21xf32>, tensor<f32>) -> tensor<21xf32>
  return %5 : tensor<21xf32>
}

// -----
// Positions from elsewhere: all is one kernel.
// CHECK-LABEL: func.func @positions_of_the_caller(
// CHECK-COUNT-1: call @
// CHECK-NOT: call @
// CHECK: return
func.func @positions_of_the_caller(%ids: tensor<21xi64>, %ignored: tensor<i64>, %p: tensor<21x13xf32>, %at: tensor<21x1xi64>, %zero: tensor<f32>) -> tensor<21xf32> {
  %0 = aten.ne %ids, %ignored : (tensor<21xi64>, tensor<i64>) -> tensor<21xi1>
  %3 = aten.gather %p dim 1 at %at : (tensor<21x13xf32>, tensor<21x1xi64>) -> tensor<21x1xf32>
  %4 = aten.squeeze %3 dim [1] : (tensor<21x1xf32>) -> tensor<21xf32>
  %5 = aten.where %0, %4, %zero : (tensor<21xi1>, tensor<21xf32>, tensor<f32>) -> tensor<21xf32>
  return %5 : tensor<21xf32>
}

// -----
// With %b in the kernel of %c, and %a in that of %d, the two would wait for each other: only one of them is joined.
// CHECK-LABEL: func.func @crossed(
// CHECK: %[[A:.*]] = call @exp{{.*}}(%arg0)
// CHECK: %[[C:.*]]:2 = call @tanh_index_select_add{{.*}}(%arg1, %[[A]], %arg2)
// CHECK: call @index_select_add{{.*}}(%[[C]]#0, %arg2, %[[A]])
// CHECK: return
func.func @crossed(%x: tensor<5xf32>, %y: tensor<5xf32>, %at: tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>) {
  %a = aten.exp %x : (tensor<5xf32>) -> tensor<5xf32>
  %b = aten.tanh %y : (tensor<5xf32>) -> tensor<5xf32>
  %ga = aten.index_select %a dim 0 at %at : (tensor<5xf32>, tensor<5xi64>) -> tensor<5xf32>
  %gb = aten.index_select %b dim 0 at %at : (tensor<5xf32>, tensor<5xi64>) -> tensor<5xf32>
  %c = aten.add %ga, %b : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %d = aten.add %gb, %a : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %c, %d : tensor<5xf32>, tensor<5xf32>
}
