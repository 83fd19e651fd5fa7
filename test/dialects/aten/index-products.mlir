// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-index-products --canonicalize --split-input-file | FileCheck %s

// Matrices times columns: the weights lie as [outputs, inputs].
// CHECK-LABEL: @columns
// CHECK: %[[T:.*]] = aten.{{transpose|permute}} %arg1
// CHECK-SAME: -> tensor<4x8x16xf32>
// CHECK: %[[Y:.*]] = aten.indexed_mm %arg0, %[[T]] at %{{.*}} : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
// CHECK-NOT: aten.index %
// CHECK-NOT: aten.bmm
func.func @columns(%x: tensor<6x8xf32>, %w: tensor<4x16x8xf32>, %s: tensor<3x4xf32>) -> tensor<6x16xf32> {
  %v, %i = aten.sort %s dim 1 descending count 2 : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %e = aten.view %i [6] : (tensor<3x2xi64>) -> tensor<6xi64>
  %l = aten.index %w[%e] : (tensor<4x16x8xf32>, tensor<6xi64>) -> tensor<6x16x8xf32>
  %c = aten.unsqueeze %x dim 2 : (tensor<6x8xf32>) -> tensor<6x8x1xf32>
  %p = aten.bmm %l, %c : (tensor<6x16x8xf32>, tensor<6x8x1xf32>) -> tensor<6x16x1xf32>
  %y = aten.squeeze %p dim [2] : (tensor<6x16x1xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// Rows times matrices, of positions that are elements of a sort of positions; what was looked up is used elsewhere too.
// CHECK-LABEL: @rows
// CHECK: %[[L:.*]] = aten.index %arg1
// CHECK: aten.indexed_mm %arg0, %arg1 at %{{.*}} : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
// CHECK: return %{{.*}}, %[[L]]
func.func @rows(%x: tensor<6x8xf32>, %w: tensor<4x8x16xf32>, %s: tensor<6x4xf32>) -> (tensor<6x16xf32>, tensor<6x8x16xf32>) {
  %v, %i = aten.sort %s dim 1 descending count 1 : (tensor<6x4xf32>) -> (tensor<6x1xf32>, tensor<6x1xi64>)
  %f = aten.view %i [6] : (tensor<6x1xi64>) -> tensor<6xi64>
  %e, %o = aten.sort %f dim 0 : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
  %l = aten.index %w[%e] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x8x16xf32>
  %r = aten.unsqueeze %x dim 1 : (tensor<6x8xf32>) -> tensor<6x1x8xf32>
  %p = aten.bmm %r, %l : (tensor<6x1x8xf32>, tensor<6x8x16xf32>) -> tensor<6x1x16xf32>
  %y = aten.squeeze %p dim [1] : (tensor<6x1x16xf32>) -> tensor<6x16xf32>
  return %y, %l : tensor<6x16xf32>, tensor<6x8x16xf32>
}

// Positions that may be those of no matrix, negative ones among them, and more positions than matrices: a lookup of these
// is an error of the run, or counts from the end, and so is one among the numbers of the matrices.
// CHECK-LABEL: @unknown
// CHECK: %[[ALL:.*]] = aten.arange [0 : 4 : 1] i64
// CHECK: %[[GIVEN:.*]] = aten.index %[[ALL]][%arg2]
// CHECK: aten.indexed_mm %{{.*}}, %arg1 at %[[GIVEN]]
// CHECK: %[[FOUND:.*]] = aten.index %{{.*}}[%{{.*}}] : (tensor<4xi64>, tensor<6xi64>)
// CHECK: aten.indexed_mm %{{.*}}, %arg1 at %[[FOUND]]
func.func @unknown(%x: tensor<6x1x8xf32>, %w: tensor<4x8x16xf32>, %e: tensor<6xi64>, %s: tensor<6x5xf32>) -> (tensor<6x1x16xf32>, tensor<6x1x16xf32>) {
  %l = aten.index %w[%e] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x8x16xf32>
  %y = aten.bmm %x, %l : (tensor<6x1x8xf32>, tensor<6x8x16xf32>) -> tensor<6x1x16xf32>
  %v, %i = aten.sort %s dim 1 descending count 1 : (tensor<6x5xf32>) -> (tensor<6x1xf32>, tensor<6x1xi64>)
  %f = aten.view %i [6] : (tensor<6x1xi64>) -> tensor<6xi64>
  %m = aten.index %w[%f] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x8x16xf32>
  %z = aten.bmm %x, %m : (tensor<6x1x8xf32>, tensor<6x8x16xf32>) -> tensor<6x1x16xf32>
  return %y, %z : tensor<6x1x16xf32>, tensor<6x1x16xf32>
}

// Of two positions one is chosen, or both stand beside each other.
// CHECK-LABEL: @chosen
// CHECK-NOT: aten.arange
// CHECK: aten.indexed_mm
func.func @chosen(%x: tensor<6x1x8xf32>, %w: tensor<4x8x16xf32>, %s: tensor<3x4xf32>, %c: tensor<6xi1>) -> tensor<6x1x16xf32> {
  %three = aten.constant dense<3> : tensor<i64>
  %i = aten.argmax %s dim 1 : (tensor<3x4xf32>) -> tensor<3xi64>
  %j = aten.argmax %s dim 1 : (tensor<3x4xf32>) -> tensor<3xi64>
  %both = aten.cat %i, %j dim 0 : (tensor<3xi64>, tensor<3xi64>) -> tensor<6xi64>
  %e = aten.where %c, %both, %three : (tensor<6xi1>, tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
  %l = aten.index %w[%e] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x8x16xf32>
  %y = aten.bmm %x, %l : (tensor<6x1x8xf32>, tensor<6x8x16xf32>) -> tensor<6x1x16xf32>
  return %y : tensor<6x1x16xf32>
}

// The router's last choice is no matrix, and has the first one in its place; what lies beyond has the last.
// CHECK-LABEL: @skipped
// CHECK-NOT: aten.arange
// CHECK-COUNT-2: aten.indexed_mm
// CHECK-NOT: aten.arange
// CHECK: return
func.func @skipped(%x: tensor<3x1x8xf32>, %w: tensor<4x8x16xf32>, %s: tensor<3x5xf32>, %t: tensor<3x9xf32>) -> (tensor<3x1x16xf32>, tensor<3x1x16xf32>) {
  %zero = aten.constant dense<0> : tensor<i64>
  %three = aten.constant dense<3> : tensor<i64>
  %four = aten.constant dense<4> : tensor<i64>
  %i = aten.argmax %s dim 1 : (tensor<3x5xf32>) -> tensor<3xi64>
  %last = aten.eq %i, %four : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %e = aten.where %last, %zero, %i : (tensor<3xi1>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  %l = aten.index %w[%e] : (tensor<4x8x16xf32>, tensor<3xi64>) -> tensor<3x8x16xf32>
  %y = aten.bmm %x, %l : (tensor<3x1x8xf32>, tensor<3x8x16xf32>) -> tensor<3x1x16xf32>
  %j = aten.argmax %t dim 1 : (tensor<3x9xf32>) -> tensor<3xi64>
  %beyond = aten.ge %j, %three : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %f = aten.where %beyond, %three, %j : (tensor<3xi1>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  %m = aten.index %w[%f] : (tensor<4x8x16xf32>, tensor<3xi64>) -> tensor<3x8x16xf32>
  %z = aten.bmm %x, %m : (tensor<3x1x8xf32>, tensor<3x8x16xf32>) -> tensor<3x1x16xf32>
  return %y, %z : tensor<3x1x16xf32>, tensor<3x1x16xf32>
}

// There are larger numbers than the one that is replaced.
// CHECK-LABEL: @not_skipped
// CHECK: aten.arange
// CHECK: aten.indexed_mm
func.func @not_skipped(%x: tensor<3x1x8xf32>, %w: tensor<4x8x16xf32>, %s: tensor<3x6xf32>) -> tensor<3x1x16xf32> {
  %zero = aten.constant dense<0> : tensor<i64>
  %four = aten.constant dense<4> : tensor<i64>
  %i = aten.argmax %s dim 1 : (tensor<3x6xf32>) -> tensor<3xi64>
  %last = aten.eq %i, %four : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %e = aten.where %last, %zero, %i : (tensor<3xi1>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  %l = aten.index %w[%e] : (tensor<4x8x16xf32>, tensor<3xi64>) -> tensor<3x8x16xf32>
  %y = aten.bmm %x, %l : (tensor<3x1x8xf32>, tensor<3x8x16xf32>) -> tensor<3x1x16xf32>
  return %y : tensor<3x1x16xf32>
}

// An unsigned number that is large.
// CHECK-LABEL: @unsigned
// CHECK: aten.arange
// CHECK: aten.indexed_mm
func.func @unsigned(%x: tensor<3x1x8xf32>, %w: tensor<4x8x16xf32>, %t: tensor<3x300xf32>) -> tensor<3x1x16xf32> {
  %three = aten.constant dense<3> : tensor<i64>
  %many = aten.constant dense<200> : tensor<ui8>
  %j = aten.argmax %t dim 1 : (tensor<3x300xf32>) -> tensor<3xi64>
  %beyond = aten.ge %j, %many : (tensor<3xi64>, tensor<ui8>) -> tensor<3xi1>
  %f = aten.where %beyond, %three, %j : (tensor<3xi1>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  %m = aten.index %w[%f] : (tensor<4x8x16xf32>, tensor<3xi64>) -> tensor<3x8x16xf32>
  %z = aten.bmm %x, %m : (tensor<3x1x8xf32>, tensor<3x8x16xf32>) -> tensor<3x1x16xf32>
  return %z : tensor<3x1x16xf32>
}

// Several rows for each matrix, and a lookup of rows of matrices, are no such products.
// CHECK-LABEL: @others
// CHECK-COUNT-2: aten.bmm
// CHECK-NOT: aten.indexed_mm
func.func @others(%x: tensor<6x2x8xf32>, %y: tensor<4x1x6xf32>, %w: tensor<4x8x16xf32>, %s: tensor<6x4xf32>) -> (tensor<6x2x16xf32>, tensor<4x1x16xf32>) {
  %v, %i = aten.sort %s dim 1 descending count 1 : (tensor<6x4xf32>) -> (tensor<6x1xf32>, tensor<6x1xi64>)
  %f = aten.view %i [6] : (tensor<6x1xi64>) -> tensor<6xi64>
  %l = aten.index %w[%f] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x8x16xf32>
  %p = aten.bmm %x, %l : (tensor<6x2x8xf32>, tensor<6x8x16xf32>) -> tensor<6x2x16xf32>
  %m = aten.index %w[:, %f] : (tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<4x6x16xf32>
  %q = aten.bmm %y, %m : (tensor<4x1x6xf32>, tensor<4x6x16xf32>) -> tensor<4x1x16xf32>
  return %p, %q : tensor<6x2x16xf32>, tensor<4x1x16xf32>
}
