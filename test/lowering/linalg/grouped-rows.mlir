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
