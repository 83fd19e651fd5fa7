// RUN: shard-opt %s --aten-fold-masks --split-input-file | FileCheck %s

// A mask that shows columns <= row is the causal flag.
// CHECK-LABEL: @causal
// CHECK-NEXT: aten.scaled_dot_product_attention %{{.*}} causal
// CHECK-NOT: mask
// CHECK: return
func.func @causal(%q: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
  %pos = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
  %row = aten.unsqueeze %pos dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
  %mask = aten.le %pos, %row : (tensor<16xi64>, tensor<16x1xi64>) -> tensor<16x16xi1>
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xi1>) -> tensor<2x4x16x8xf32>
  return %o : tensor<2x4x16x8xf32>
}

// -----

// A strict comparison hides the diagonal: it must stay a mask.
// CHECK-LABEL: @strict
// CHECK: aten.lt
// CHECK: aten.scaled_dot_product_attention {{.*}} mask(
// CHECK-NOT: causal
func.func @strict(%q: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
  %pos = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
  %row = aten.unsqueeze %pos dim 1 : (tensor<16xi64>) -> tensor<16x1xi64>
  %mask = aten.lt %pos, %row : (tensor<16xi64>, tensor<16x1xi64>) -> tensor<16x16xi1>
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xi1>) -> tensor<2x4x16x8xf32>
  return %o : tensor<2x4x16x8xf32>
}

// -----

// Indexing a padding mask by ranges of its own dims is a view: nothing is looked up.
// CHECK-LABEL: @range
// CHECK-NOT: aten.index
// CHECK: aten.unsqueeze
// CHECK: return
func.func @range(%m: tensor<8x11xi1>) -> tensor<8x1x1x11xi1> {
  %b = aten.arange [0 : 8 : 1] i64 : tensor<8xi64>
  %b1 = aten.view %b [8, 1, 1, 1] : (tensor<8xi64>) -> tensor<8x1x1x1xi64>
  %k = aten.arange [0 : 11 : 1] i64 : tensor<11xi64>
  %k1 = aten.view %k [1, 1, 1, 11] : (tensor<11xi64>) -> tensor<1x1x1x11xi64>
  %r = aten.index %m[%b1, %k1] : (tensor<8x11xi1>, tensor<8x1x1x1xi64>, tensor<1x1x1x11xi64>) -> tensor<8x1x1x11xi1>
  return %r : tensor<8x1x1x11xi1>
}

// -----

// A reversed range is no view.
// CHECK-LABEL: @reversed
// CHECK: aten.index
func.func @reversed(%m: tensor<4xf32>) -> tensor<4xf32> {
  %i = aten.arange [3 : -1 : -1] i64 : tensor<4xi64>
  %r = aten.index %m[%i] : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
