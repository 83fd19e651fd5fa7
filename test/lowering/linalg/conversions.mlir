// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-to-linalg --split-input-file --verify-diagnostics | FileCheck %s

// A float that does not fit a small integer wraps around.
// CHECK-LABEL: func.func @wraps
// CHECK:         arith.fptosi %{{.*}} : f32 to i32
// CHECK:         arith.trunci %{{.*}} : i32 to i8
func.func @wraps(%x: tensor<8xf32>) -> tensor<8xui8> attributes {exec.kernel} {
  %0 = aten.to_copy %x to ui8 : (tensor<8xf32>) -> tensor<8xui8>
  return %0 : tensor<8xui8>
}

// -----

// A scan has the running sum of each row and all that it was.
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @scan
// CHECK:         linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[ROW]]], iterator_types = ["reduction", "parallel"]}
// CHECK-NEXT:    ^bb0(%[[X:.*]]: i8, %{{.*}}: i64, %[[SUM:.*]]: i64):
// CHECK:           %[[NEXT:.*]] = arith.addi %[[SUM]], %{{.*}} : i64
// CHECK-NEXT:      linalg.yield %[[NEXT]], %[[NEXT]]
func.func @scan(%x: tensor<4x9xi8>) -> tensor<4x9xi64> attributes {exec.kernel} {
  %0 = aten.cumsum %x dim 0 : (tensor<4x9xi8>) -> tensor<4x9xi64>
  return %0 : tensor<4x9xi64>
}

// -----

// All ops that have no conversion are reported, with the types that the model has.
func.func @reports(%x: tensor<i1>, %i: tensor<i64>) -> (tensor<i1>, tensor<i1>) attributes {exec.kernel} {
  // expected-error @+1 {{'aten.gather' has no kernel for (tensor<i1>, tensor<i64>) -> tensor<i1>}}
  %0 = aten.gather %x dim 0 at %i : (tensor<i1>, tensor<i64>) -> tensor<i1>
  // expected-error @+1 {{'aten.index_select' has no kernel}}
  %1 = aten.index_select %x dim 0 at %i : (tensor<i1>, tensor<i64>) -> tensor<i1>
  return %0, %1 : tensor<i1>, tensor<i1>
}
