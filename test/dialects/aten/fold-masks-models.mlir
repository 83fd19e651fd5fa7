// RUN: shard-opt %s --aten-fold-masks | FileCheck %s

// The mask of GPT-2: positions are consecutive, so one sequence is packed, and what is left is causal.
// CHECK-LABEL: func.func @packed_sequences
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg0, %arg0 causal :
// CHECK-NEXT: return
func.func @packed_sequences(%q: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
  %pos = aten.arange [0 : 16 : 1] i64 : tensor<16xi64>
  %one = aten.constant dense<1> : tensor<i64>
  %row = aten.unsqueeze %pos dim 0 : (tensor<16xi64>) -> tensor<1x16xi64>
  %ids = aten.expand %row [2, 16] : (tensor<1x16xi64>) -> tensor<2x16xi64>
  %first = aten.slice %ids dim 1 [0 : 1 : 1] : (tensor<2x16xi64>) -> tensor<2x1xi64>
  %before = aten.sub %first, %one : (tensor<2x1xi64>, tensor<i64>) -> tensor<2x1xi64>
  %all = aten.cat %before, %ids dim 1 : (tensor<2x1xi64>, tensor<2x16xi64>) -> tensor<2x17xi64>
  %prev = aten.slice %all dim 1 [0 : 16 : 1] : (tensor<2x17xi64>) -> tensor<2x16xi64>
  %next = aten.slice %all dim 1 [1 : 17 : 1] : (tensor<2x17xi64>) -> tensor<2x16xi64>
  %step = aten.sub %next, %prev : (tensor<2x16xi64>, tensor<2x16xi64>) -> tensor<2x16xi64>
  %jump = aten.ne %step, %one : (tensor<2x16xi64>, tensor<i64>) -> tensor<2x16xi1>
  %seq = aten.cumsum %jump dim 1 : (tensor<2x16xi1>) -> tensor<2x16xi64>
  %b = aten.arange [0 : 2 : 1] i64 : tensor<2xi64>
  %b4 = aten.view %b [2, 1, 1, 1] : (tensor<2xi64>) -> tensor<2x1x1x1xi64>
  %q4 = aten.view %pos [1, 1, 16, 1] : (tensor<16xi64>) -> tensor<1x1x16x1xi64>
  %k4 = aten.view %pos [1, 1, 1, 16] : (tensor<16xi64>) -> tensor<1x1x1x16xi64>
  %qs = aten.index %seq[%b4, %q4] : (tensor<2x16xi64>, tensor<2x1x1x1xi64>, tensor<1x1x16x1xi64>) -> tensor<2x1x16x1xi64>
  %ks = aten.index %seq[%b4, %k4] : (tensor<2x16xi64>, tensor<2x1x1x1xi64>, tensor<1x1x1x16xi64>) -> tensor<2x1x1x16xi64>
  %same = aten.eq %qs, %ks : (tensor<2x1x16x1xi64>, tensor<2x1x1x16xi64>) -> tensor<2x1x16x16xi1>
  %qi = aten.index %ids[%b4, %q4] : (tensor<2x16xi64>, tensor<2x1x1x1xi64>, tensor<1x1x16x1xi64>) -> tensor<2x1x16x1xi64>
  %ki = aten.index %ids[%b4, %k4] : (tensor<2x16xi64>, tensor<2x1x1x1xi64>, tensor<1x1x1x16xi64>) -> tensor<2x1x1x16xi64>
  %le = aten.le %ki, %qi : (tensor<2x1x1x16xi64>, tensor<2x1x16x1xi64>) -> tensor<2x1x16x16xi1>
  %mask = aten.bitwise_and %same, %le : (tensor<2x1x16x16xi1>, tensor<2x1x16x16xi1>) -> tensor<2x1x16x16xi1>
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x1x16x16xi1>) -> tensor<2x4x16x8xf32>
  return %o : tensor<2x4x16x8xf32>
}

// The mask of BERT: indexing by all positions is a view, and the attention broadcasts it. Sizes of one
// symbol are equal.
// CHECK-LABEL: func.func @padding
// CHECK-NEXT: %[[B:.*]] = aten.to_copy %arg2 to i1 : (tensor<?x?xi64>) -> tensor<?x?xi1>
// CHECK-NEXT: %[[R:.*]] = aten.unsqueeze %[[B]] dim 1 :
// CHECK-NEXT: %[[M:.*]] = aten.unsqueeze %[[R]] dim 2 : (tensor<?x1x?xi1>) -> tensor<?x1x1x?xi1>
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg0, %arg0 mask(%[[M]]) :
func.func @padding(%q: tensor<?x4x?x8xf32>, %ids: tensor<?x?xi64> {dist.sizes = [#dist.size<b>, #dist.size<s>]}, %seen: tensor<?x?xi64> {dist.sizes = [#dist.size<b>, #dist.size<s>]}) -> tensor<?x4x?x8xf32> attributes {dist.symbols = [#dist.symbol<b in [1, 64]>, #dist.symbol<s in [2, 64]>]} {
  %b = aten.sym_size %ids dim 0 : (tensor<?x?xi64>) -> index
  %s = aten.sym_size %ids dim 1 : (tensor<?x?xi64>) -> index
  %visible = aten.to_copy %seen to i1 : (tensor<?x?xi64>) -> tensor<?x?xi1>
  %batch = aten.arange [0 : %b : 1] i64 : tensor<?xi64>
  %pos = aten.arange [0 : %s : 1] i64 : tensor<?xi64>
  %b2 = aten.unsqueeze %batch dim 1 : (tensor<?xi64>) -> tensor<?x1xi64>
  %b3 = aten.unsqueeze %b2 dim 2 : (tensor<?x1xi64>) -> tensor<?x1x1xi64>
  %b4 = aten.unsqueeze %b3 dim 3 : (tensor<?x1x1xi64>) -> tensor<?x1x1x1xi64>
  %q2 = aten.unsqueeze %pos dim 1 : (tensor<?xi64>) -> tensor<?x1xi64>
  %zero = aten.constant dense<0> : tensor<i64>
  %ge = aten.ge %q2, %zero : (tensor<?x1xi64>, tensor<i64>) -> tensor<?x1xi1>
  %key = aten.index %visible[%b4, %pos] : (tensor<?x?xi1>, tensor<?x1x1x1xi64>, tensor<?xi64>) -> tensor<?x1x1x?xi1>
  %both = aten.bitwise_and %ge, %key : (tensor<?x1xi1>, tensor<?x1x1x?xi1>) -> tensor<?x1x?x?xi1>
  %mask = aten.expand %both [%b, 1, %s, %s] : (tensor<?x1x?x?xi1>) -> tensor<?x1x?x?xi1>
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x1x?x?xi1>) -> tensor<?x4x?x8xf32>
  return %o : tensor<?x4x?x8xf32>
}

// An additive mask of 0 and -infinity.
// CHECK-LABEL: func.func @additive
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg0, %arg0 causal :
func.func @additive(%q: tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32> {
  %pos = aten.arange [0 : 5 : 1] i64 : tensor<5xi64>
  %row = aten.unsqueeze %pos dim 1 : (tensor<5xi64>) -> tensor<5x1xi64>
  %seen = aten.ge %row, %pos : (tensor<5x1xi64>, tensor<5xi64>) -> tensor<5x5xi1>
  %zero = aten.constant dense<0.0> : tensor<f32>
  %inf = aten.constant dense<0xFF800000> : tensor<f32>
  %mask = aten.where %seen, %zero, %inf : (tensor<5x5xi1>, tensor<f32>, tensor<f32>) -> tensor<5x5xf32>
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%mask) : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<5x5xf32>) -> tensor<2x4x5x8xf32>
  return %o : tensor<2x4x5x8xf32>
}

// What must stay: a causal mask that is shifted (a cache of keys), and one with a window.
// CHECK-LABEL: func.func @not_causal
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 mask(
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 mask(
func.func @not_causal(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x9x8xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) {
  %cols = aten.arange [0 : 9 : 1] i64 : tensor<9xi64>
  %shifted = aten.arange [4 : 9 : 1] i64 : tensor<5xi64>
  %rows = aten.unsqueeze %shifted dim 1 : (tensor<5xi64>) -> tensor<5x1xi64>
  %mask = aten.le %cols, %rows : (tensor<9xi64>, tensor<5x1xi64>) -> tensor<5x9xi1>
  %0 = aten.scaled_dot_product_attention %q, %k, %k mask(%mask) : (tensor<2x4x5x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>, tensor<5x9xi1>) -> tensor<2x4x5x8xf32>
  %pos = aten.arange [0 : 5 : 1] i64 : tensor<5xi64>
  %row = aten.unsqueeze %pos dim 1 : (tensor<5xi64>) -> tensor<5x1xi64>
  %le = aten.le %cols, %row : (tensor<9xi64>, tensor<5x1xi64>) -> tensor<5x9xi1>
  %distance = aten.sub %row, %cols : (tensor<5x1xi64>, tensor<9xi64>) -> tensor<5x9xi64>
  %three = aten.constant dense<3> : tensor<i64>
  %near = aten.lt %distance, %three : (tensor<5x9xi64>, tensor<i64>) -> tensor<5x9xi1>
  %window = aten.bitwise_and %le, %near : (tensor<5x9xi1>, tensor<5x9xi1>) -> tensor<5x9xi1>
  %1 = aten.scaled_dot_product_attention %q, %k, %k mask(%window) : (tensor<2x4x5x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>, tensor<5x9xi1>) -> tensor<2x4x5x8xf32>
  return %0, %1 : tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>
}

// A range inside a dim is a slice, a position is a selection; the diagonal stays an index.
// CHECK-LABEL: func.func @index
// CHECK-NEXT: %[[S:.*]] = aten.slice %arg0 dim 2 [1 : 4 : 1]
// CHECK-NEXT: %[[T:.*]] = aten.select %[[S]] dim 0 at 2
// CHECK-NEXT: %[[P:.*]] = aten.permute %[[T]] [1, 0]
// CHECK: aten.index %arg0[
// CHECK: return %[[P]],
func.func @index(%x: tensor<4x5x6xf32>) -> (tensor<3x5xf32>, tensor<4x6xf32>) {
  %two = aten.constant dense<2> : tensor<i64>
  %range = aten.arange [1 : 4 : 1] i64 : tensor<3xi64>
  %0 = aten.index %x[%two, :, %range] : (tensor<4x5x6xf32>, tensor<i64>, tensor<3xi64>) -> tensor<3x5xf32>
  %all = aten.arange [0 : 4 : 1] i64 : tensor<4xi64>
  %1 = aten.index %x[%all, %all] : (tensor<4x5x6xf32>, tensor<4xi64>, tensor<4xi64>) -> tensor<4x6xf32>
  return %0, %1 : tensor<3x5xf32>, tensor<4x6xf32>
}
