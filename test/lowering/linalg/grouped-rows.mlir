// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(aten-decompose-for-kernels))' | FileCheck %s

// Three rows for a matrix: they are brought together, and the results back to their places.
// CHECK-LABEL: @together
// CHECK: aten.sort
// CHECK: aten.indexed_mm %{{.*}} sorted
// CHECK: aten.index_select
func.func @together(%x: tensor<12x8xf32>, %w: tensor<4x8x16xf32>, %i: tensor<12xi64>) -> tensor<12x16xf32> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<12x8xf32>, tensor<4x8x16xf32>, tensor<12xi64>) -> tensor<12x16xf32>
  return %y : tensor<12x16xf32>
}

// -----

// Between two products the rows stay in order: they are looked up once, and brought back once.
// CHECK-LABEL: @once
// CHECK: %[[V:.*]], %[[I:.*]] = aten.sort %arg3 dim 0
// CHECK: %{{.*}}, %[[BACK:.*]] = aten.sort %[[I]] dim 0
// CHECK: %[[ROWS:.*]] = aten.index_select %arg0 dim 0 at %[[I]]
// CHECK: %[[FIRST:.*]] = aten.indexed_mm %[[ROWS]], %arg1 at %[[V]] sorted
// CHECK: %[[BETWEEN:.*]] = aten.silu %[[FIRST]]
// CHECK: %[[SECOND:.*]] = aten.indexed_mm %[[BETWEEN]], %arg2 at %[[V]] sorted
// CHECK: %[[Y:.*]] = aten.index_select %[[SECOND]] dim 0 at %[[BACK]]
// CHECK: return %[[Y]]
func.func @once(%x: tensor<?x8xf32>, %w: tensor<4x8x16xf32>, %u: tensor<4x16x8xf32>, %i: tensor<?xi64>) -> tensor<?x8xf32> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<?x8xf32>, tensor<4x8x16xf32>, tensor<?xi64>) -> tensor<?x16xf32>
  %z = aten.silu %y : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %r = aten.indexed_mm %z, %u at %i : (tensor<?x16xf32>, tensor<4x16x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

// What lies between is computed once, and rows that two products read are looked up once: a backward has such.
// CHECK-LABEL: @shared
// CHECK: %[[V:.*]], %[[I:.*]] = aten.sort %arg4 dim 0
// CHECK-COUNT-1: aten.linear
// CHECK-NOT: aten.linear
// CHECK: %[[ROWS:.*]] = aten.relu
// CHECK-NOT: aten.index_select
// CHECK: aten.indexed_mm %[[ROWS]], %arg2 at %[[V]] sorted
// CHECK: %[[OTHER:.*]] = aten.index_select %arg3 dim 0 at %[[I]]
// CHECK: aten.indexed_outer %[[ROWS]], %[[OTHER]] at %[[V]] groups [4] sorted
func.func @shared(%x: tensor<24x8xf32>, %w: tensor<4x8x8xf32>, %u: tensor<4x8x8xf32>, %g: tensor<24x8xf32>, %i: tensor<24xi64>, %l: tensor<8x8xf32>) -> (tensor<24x8xf32>, tensor<4x8x8xf32>) {
  %y = aten.indexed_mm %x, %w at %i : (tensor<24x8xf32>, tensor<4x8x8xf32>, tensor<24xi64>) -> tensor<24x8xf32>
  %m = aten.linear %y, %l : (tensor<24x8xf32>, tensor<8x8xf32>) -> tensor<24x8xf32>
  %h = aten.relu %m : (tensor<24x8xf32>) -> tensor<24x8xf32>
  %r = aten.indexed_mm %h, %u at %i : (tensor<24x8xf32>, tensor<4x8x8xf32>, tensor<24xi64>) -> tensor<24x8xf32>
  %o = aten.indexed_outer %h, %g at %i groups [4] : (tensor<24x8xf32>, tensor<24x8xf32>, tensor<24xi64>) -> tensor<4x8x8xf32>
  return %r, %o : tensor<24x8xf32>, tensor<4x8x8xf32>
}

// -----

// A target for which that pays from four rows on.
// CHECK-LABEL: @apart
// CHECK-NOT: aten.sort
// CHECK: aten.indexed_mm
// CHECK-NOT: sorted
// CHECK: return
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<"together_rows" = 4 : i64>>} {
func.func @apart(%x: tensor<12x8xf32>, %w: tensor<4x8x16xf32>, %i: tensor<12xi64>) -> tensor<12x16xf32> {
  %y = aten.indexed_mm %x, %w at %i : (tensor<12x8xf32>, tensor<4x8x16xf32>, tensor<12xi64>) -> tensor<12x16xf32>
  return %y : tensor<12x16xf32>
}
}
