// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-undo-row-orders --canonicalize --split-input-file | FileCheck %s
// RUN: shard-opt %s --aten-undo-row-orders --aten-fold-masks --split-input-file | FileCheck %s --check-prefix=FOLD

// Rows of a mixture: each token twice, in the order of their experts, with a bias for each expert and a weight for each row. The inverse
// of the order is written at its positions.
// CHECK-LABEL: func @mixture
// CHECK-NOT: aten.sort
// CHECK: %[[EACH:.*]] = aten.div %{{.*}}, %{{.*}} {rounding_mode = "floor"}
// CHECK: %[[ROWS:.*]] = aten.index %arg0[%[[EACH]]]
// CHECK: %[[FIRST:.*]] = aten.indexed_mm %[[ROWS]], %arg1 at %arg3 :
// CHECK: %[[BIAS:.*]] = aten.index %arg2[%arg3]
// CHECK: %[[SUM:.*]] = aten.add %[[FIRST]], %[[BIAS]]
// CHECK: %[[HALVES:.*]]:2 = aten.split_with_sizes %[[SUM]]
// CHECK: %[[GATED:.*]] = aten.mul %[[HALVES]]#0, %[[HALVES]]#1
// CHECK: %[[WEIGHT:.*]] = aten.unsqueeze %arg4 dim 1
// CHECK: %[[RESULT:.*]] = aten.mul %[[GATED]], %[[WEIGHT]]
// CHECK: return %[[RESULT]]
// Where a row is divided by two, each token is twice in turn: a view.
// FOLD-LABEL: func @mixture
// FOLD: %[[ONE:.*]] = aten.unsqueeze %arg0 dim 1
// FOLD: %[[TWO:.*]] = aten.expand %[[ONE]] [3, 2, 8]
// FOLD: %[[ROWS:.*]] = aten.view %[[TWO]] [6, 8]
// FOLD: aten.indexed_mm %[[ROWS]]
func.func @mixture(%x: tensor<3x8xf32>, %w: tensor<4x8x16xf32>, %b: tensor<4x16xf32>, %e: tensor<6xi64>, %s: tensor<6xf32>) -> tensor<6x8xf32> {
  %two = aten.constant dense<2> : tensor<i64>
  %v, %i = aten.sort %e dim 0 : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
  %token = aten.div %i, %two {rounding_mode = "floor"} : (tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
  %g = aten.index %x[%token] : (tensor<3x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  %p = aten.indexed_mm %g, %w at %v sorted : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  %bias = aten.index %b[%v] : (tensor<4x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  %q = aten.add %p, %bias : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
  %h:2 = aten.split_with_sizes %q [8, 8] dim 1 : (tensor<6x16xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
  %m = aten.mul %h#0, %h#1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %sg = aten.index %s[%i] : (tensor<6xf32>, tensor<6xi64>) -> tensor<6xf32>
  %sc = aten.unsqueeze %sg dim 1 : (tensor<6xf32>) -> tensor<6x1xf32>
  %r = aten.mul %m, %sc : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  %zeros = aten.constant dense<0> : tensor<6xi64>
  %count = aten.arange [0 : 6 : 1] i64 : tensor<6xi64>
  %back = aten.index_write %zeros dims [0] at %i of %count : (tensor<6xi64>, tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  %y = aten.index %r[%back] : (tensor<6x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// The inverse is the order's own order.
// CHECK-LABEL: func @sorted_twice
// CHECK: %[[Y:.*]] = aten.softmax %arg0 dim 1
// CHECK-NEXT: return %[[Y]]
func.func @sorted_twice(%x: tensor<5x7xf32>, %k: tensor<5xf32>) -> tensor<5x7xf32> {
  %v, %i = aten.sort %k dim 0 descending : (tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %s, %b = aten.sort %i dim 0 : (tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>)
  %g = aten.index_select %x dim 0 at %i : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %m = aten.softmax %g dim 1 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = aten.index_select %m dim 0 at %b : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// -----

// Any number of rows: they are as many as positions, which only products by index show.
// CHECK-LABEL: func @dynamic
// CHECK: %[[Y:.*]] = aten.indexed_mm %arg0, %arg1 at %arg2 :
// CHECK: aten.relu %[[Y]]
func.func @dynamic(%x: tensor<?x8xf32>, %w: tensor<4x8x8xf32>, %e: tensor<?xi64>) -> tensor<?x8xf32> {
  %v, %i = aten.sort %e dim 0 : (tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi64>)
  %s, %b = aten.sort %i dim 0 : (tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi64>)
  %p = aten.indexed_mm %x, %w at %e : (tensor<?x8xf32>, tensor<4x8x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %g = aten.index %p[%i] : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %m = aten.relu %g : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = aten.index %m[%b] : (tensor<?x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// What is looked up by its own order is sorted.
// CHECK-LABEL: func @values
// CHECK: %[[V:.*]], %{{.*}} = aten.sort %arg0 dim 0
// CHECK-NEXT: return %[[V]]
func.func @values(%e: tensor<6xi64>) -> tensor<6xi64> {
  %v, %i = aten.sort %e dim 0 : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
  %y = aten.index %e[%i] : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  return %y : tensor<6xi64>
}

// -----

// Rows that are asked for in order too stay in it.
// CHECK-LABEL: func @used
// CHECK-COUNT-2: aten.index
func.func @used(%x: tensor<5x7xf32>, %k: tensor<5xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %v, %i = aten.sort %k dim 0 : (tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %s, %b = aten.sort %i dim 0 : (tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>)
  %g = aten.index %x[%i] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %m = aten.exp %g : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = aten.index %m[%b] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  return %m, %y : tensor<5x7xf32>, tensor<5x7xf32>
}

// -----

// What becomes of a row by a triangle, or a sum over all rows before it, depends on its place.
// CHECK-LABEL: func @by_place
// CHECK-COUNT-4: aten.index
func.func @by_place(%x: tensor<5x7xf32>, %k: tensor<5xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %v, %i = aten.sort %k dim 0 : (tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %s, %b = aten.sort %i dim 0 : (tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>)
  %g = aten.index %x[%i] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %m = aten.tril %g : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = aten.index %m[%b] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %x2 = aten.exp %x : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %h = aten.index %x2[%i] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %n = aten.cumsum %h dim 0 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = aten.index %n[%b] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  return %y, %z : tensor<5x7xf32>, tensor<5x7xf32>
}

// -----

// Positions of some rows are no order of all. An order that goes down is no inverse, but composes with the order that it is of.
// CHECK-LABEL: func @others
// CHECK: %[[DOWN:.*]], %{{.*}} = aten.sort %{{.*}} dim 0 descending
// CHECK-DAG: %[[ROWS:.*]] = aten.index %arg0[%[[DOWN]]]
// CHECK-DAG: aten.exp %[[ROWS]]
// CHECK-DAG: %[[H:.*]] = aten.index %arg0
// CHECK-DAG: %[[N:.*]] = aten.sin %[[H]]
// CHECK-DAG: aten.index %[[N]]
func.func @others(%x: tensor<9x7xf32>, %k: tensor<5xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %v, %i = aten.sort %k dim 0 : (tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %s, %b = aten.sort %i dim 0 : (tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>)
  %t, %down = aten.sort %i dim 0 descending : (tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>)
  %q, %other = aten.sort %k dim 0 descending : (tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  %g = aten.index %x[%i] : (tensor<9x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %m = aten.exp %g : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %d = aten.index %m[%down] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %h = aten.index %x[%other] : (tensor<9x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  %n = aten.sin %h : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = aten.index %n[%b] : (tensor<5x7xf32>, tensor<5xi64>) -> tensor<5x7xf32>
  return %d, %z : tensor<5x7xf32>, tensor<5x7xf32>
}
