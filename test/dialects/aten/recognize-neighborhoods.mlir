// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention whose mask leaves each position a window.
// RUN: shard-opt %s --aten-recognize-neighborhoods=mode=all --verify-diagnostics | FileCheck %s
// RUN: shard-opt %s --aten-recognize-neighborhoods=mode=off | FileCheck %s --check-prefix=OFF
// RUN: not shard-opt %s --aten-recognize-neighborhoods=mode=some 2>&1 | FileCheck %s --check-prefix=MODE

// OFF-NOT: aten.neighborhood
// OFF-NOT: aten.elements
// MODE: the neighborhoods to recognise are auto, all or off, not 'some'

// A band that is stored, of keys from one before the query to two behind it. Other factors stay what they are.
// CHECK-LABEL: func.func @stored
// CHECK-SAME: %arg3: tensor<6x6xi1> {dist.kind = "constant", dist.name = "mask"})
// CHECK: aten.neighborhood_qk %{{.*}}, %{{.*}} kernel [4] stride [1] dilation [1] causal [false] cut [2] place [] : (tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>) -> tensor<1x6x2x4xf32>
// CHECK: aten.constant dense<{{\[\[\[\[3\]\], \[\[4\]\], \[\[4\]\], \[\[4\]\], \[\[3\]\], \[\[2\]\]\]\]}}>
// CHECK: aten.softmax %{{.*}} dim 3
// CHECK: aten.neighborhood_av
func.func @stored(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>,
                  %m: tensor<6x6xi1> {dist.kind = "constant", dist.name = "mask", aten.elements = dense<[
    [true, true, true, false, false, false], [true, true, true, true, false, false], [false, true, true, true, true, false],
    [false, false, true, true, true, true], [false, false, false, true, true, true], [false, false, false, false, true, true]]> : tensor<6x6xi1>})
    -> tensor<1x2x6x4xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %v mask(%m)
      : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<6x6xi1>) -> tensor<1x2x6x4xf32>
  return %0 : tensor<1x2x6x4xf32>
}

// Causal along rows of an image of 4 x 3, whose window is moved inwards along columns; of scores that are products of batches. The mask is added.
// CHECK-LABEL: func.func @written_out
// CHECK: %[[Q:.*]] = aten.view %{{.*}} [2, 4, 3, 1, 4] : (tensor<2x12x1x4xf32>) -> tensor<2x4x3x1x4xf32>
// CHECK: %[[S:.*]] = aten.neighborhood_qk %[[Q]], %{{.*}} kernel [2, 2] stride [1, 1] dilation [1, 1] causal [false, false] cut [0, -1] place []
// CHECK: aten.div %[[S]], %{{.*}} : (tensor<2x4x3x1x2x2xf32>, tensor<f32>)
// CHECK: aten.softmax %{{.*}} dim 4 : (tensor<2x4x3x1x4xf32>)
// CHECK: %[[Y:.*]] = aten.neighborhood_av
// CHECK: aten.view %[[Y]] [2, 12, 1, 4]
// CHECK: aten.squeeze {{.*}} : (tensor<2x12x1x4xf32>) -> tensor<2x12x4xf32>
// CHECK-NOT: aten.bmm
func.func @written_out(%q: tensor<2x12x4xf32>, %k: tensor<2x12x4xf32>, %v: tensor<2x12x4xf32>) -> tensor<2x12x4xf32> {
  %i = aten.arange [0 : 12 : 1] i64 : tensor<12xi64>
  %three = aten.constant dense<3> : tensor<i64>
  %one = aten.constant dense<1> : tensor<i64>
  %zero = aten.constant dense<0> : tensor<i64>
  %y = aten.div %i, %three {rounding_mode = "floor"} : (tensor<12xi64>, tensor<i64>) -> tensor<12xi64>
  %x = aten.remainder %i, %three : (tensor<12xi64>, tensor<i64>) -> tensor<12xi64>
  %yq = aten.unsqueeze %y dim 1 : (tensor<12xi64>) -> tensor<12x1xi64>
  %up = aten.sub %yq, %y : (tensor<12x1xi64>, tensor<12xi64>) -> tensor<12x12xi64>
  %below = aten.ge %up, %zero : (tensor<12x12xi64>, tensor<i64>) -> tensor<12x12xi1>
  %near = aten.le %up, %one : (tensor<12x12xi64>, tensor<i64>) -> tensor<12x12xi1>
  %rows = aten.logical_and %below, %near : (tensor<12x12xi1>, tensor<12x12xi1>) -> tensor<12x12xi1>
  %xq = aten.unsqueeze %x dim 1 : (tensor<12xi64>) -> tensor<12x1xi64>
  %left = aten.sub %xq, %one : (tensor<12x1xi64>, tensor<i64>) -> tensor<12x1xi64>
  %start = aten.clamp %left min(%zero) max(%one) : (tensor<12x1xi64>, tensor<i64>, tensor<i64>) -> tensor<12x1xi64>
  %end = aten.add %start, %one : (tensor<12x1xi64>, tensor<i64>) -> tensor<12x1xi64>
  %after = aten.ge %x, %start : (tensor<12xi64>, tensor<12x1xi64>) -> tensor<12x12xi1>
  %before = aten.le %x, %end : (tensor<12xi64>, tensor<12x1xi64>) -> tensor<12x12xi1>
  %columns = aten.bitwise_and %after, %before : (tensor<12x12xi1>, tensor<12x12xi1>) -> tensor<12x12xi1>
  %m = aten.bitwise_and %rows, %columns : (tensor<12x12xi1>, tensor<12x12xi1>) -> tensor<12x12xi1>
  %shown = aten.constant dense<0.0> : tensor<f32>
  %hidden = aten.constant dense<0xFF800000> : tensor<f32>
  %add = aten.where %m, %shown, %hidden : (tensor<12x12xi1>, tensor<f32>, tensor<f32>) -> tensor<12x12xf32>
  %kt = aten.transpose %k [1, 2] : (tensor<2x12x4xf32>) -> tensor<2x4x12xf32>
  %p = aten.bmm %q, %kt : (tensor<2x12x4xf32>, tensor<2x4x12xf32>) -> tensor<2x12x12xf32>
  %two = aten.constant dense<2.0> : tensor<f32>
  %s = aten.div %p, %two : (tensor<2x12x12xf32>, tensor<f32>) -> tensor<2x12x12xf32>
  %masked = aten.add %s, %add : (tensor<2x12x12xf32>, tensor<12x12xf32>) -> tensor<2x12x12xf32>
  %w = aten.softmax %masked dim 2 : (tensor<2x12x12xf32>) -> tensor<2x12x12xf32>
  %o = aten.bmm %w, %v : (tensor<2x12x12xf32>, tensor<2x12x4xf32>) -> tensor<2x12x4xf32>
  return %o : tensor<2x12x4xf32>
}

// Weights that something else reads, too, are computed.
// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: aten.neighborhood
func.func @read_twice(%q: tensor<6x4xf32>, %v: tensor<6x4xf32>, %s: tensor<6x6xf32>) -> (tensor<6x4xf32>, tensor<6x6xf32>) {
  %true = aten.constant dense<true> : tensor<6x6xi1>
  %low = aten.tril %true : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %m = aten.triu %low {diagonal = -1 : i64} : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %hidden = aten.constant dense<0xFF800000> : tensor<f32>
  %t = aten.transpose %q [0, 1] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %p = aten.mm %q, %t : (tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
  %masked = aten.where %m, %p, %hidden : (tensor<6x6xi1>, tensor<6x6xf32>, tensor<f32>) -> tensor<6x6xf32>
  %w = aten.softmax %masked dim 1 : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %o = aten.mm %w, %v : (tensor<6x6xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %o, %w : tensor<6x4xf32>, tensor<6x6xf32>
}

// A factor after the mask must leave -infinity what it is.
// CHECK-LABEL: func.func @factor_behind_the_mask
// CHECK-COUNT-1: aten.neighborhood_qk
// CHECK-NOT: aten.neighborhood_qk
func.func @factor_behind_the_mask(%q: tensor<6x4xf32>, %f: tensor<f32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %true = aten.constant dense<true> : tensor<6x6xi1>
  %low = aten.tril %true : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %m = aten.triu %low {diagonal = -1 : i64} : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %not = aten.logical_not %m : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %hidden = aten.constant dense<0xFF800000> : tensor<f32>
  %half = aten.constant dense<0.5> : tensor<f32>
  %t = aten.transpose %q [0, 1] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %p = aten.mm %q, %t : (tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
  %masked = aten.masked_fill %p, %not, %hidden : (tensor<6x6xf32>, tensor<6x6xi1>, tensor<f32>) -> tensor<6x6xf32>
  %s = aten.mul %masked, %half : (tensor<6x6xf32>, tensor<f32>) -> tensor<6x6xf32>
  %w = aten.softmax %s dim 1 : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %o = aten.mm %w, %q : (tensor<6x6xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %p2 = aten.mm %q, %t : (tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
  %masked2 = aten.masked_fill %p2, %not, %hidden : (tensor<6x6xf32>, tensor<6x6xi1>, tensor<f32>) -> tensor<6x6xf32>
  %s2 = aten.mul %masked2, %f : (tensor<6x6xf32>, tensor<f32>) -> tensor<6x6xf32>
  %w2 = aten.softmax %s2 dim 1 : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %o2 = aten.mm %w2, %q : (tensor<6x6xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %o, %o2 : tensor<6x4xf32>, tensor<6x4xf32>
}

// CHECK-LABEL: func.func @globals
// CHECK-NOT: aten.neighborhood
func.func @globals(%q: tensor<1x1x4x2xf32>) -> tensor<1x1x4x2xf32> {
  %m = aten.constant dense<[[true, true, true, true], [true, true, false, false], [true, false, true, false], [true, false, false, true]]> : tensor<4x4xi1>
  // expected-remark @below {{is computed for all pairs of positions: its mask is not that of windows over a line, an image or a volume of its 4 positions}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask(%m)
      : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<4x4xi1>) -> tensor<1x1x4x2xf32>
  return %0 : tensor<1x1x4x2xf32>
}

// A large number is not -infinity.
// CHECK-LABEL: func.func @large
// CHECK-NOT: aten.neighborhood
func.func @large(%q: tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32> {
  %m = aten.constant dense<[[0.0, -1.0e9, -1.0e9], [-1.0e9, 0.0, -1.0e9], [-1.0e9, -1.0e9, 0.0]]> : tensor<3x3xf32>
  // expected-remark @below {{its mask adds -1.00e+09 to scores, which need not hide a key as -infinity does}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask(%m)
      : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<3x3xf32>) -> tensor<1x1x3x2xf32>
  return %0 : tensor<1x1x3x2xf32>
}

// CHECK-LABEL: func.func @of_heads
// CHECK-NOT: aten.neighborhood
func.func @of_heads(%q: tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> {
  %m = aten.constant dense<[[[[true, false], [false, true]], [[true, false], [true, true]]]]> : tensor<1x2x2x2xi1>
  // expected-remark @below {{its mask is not the same for all heads and for all of the batch}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask(%m)
      : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xi1>) -> tensor<1x2x2x2xf32>
  return %0 : tensor<1x2x2x2xf32>
}

// A mask that only the run knows.
// CHECK-LABEL: func.func @given
// CHECK-NOT: aten.neighborhood
func.func @given(%q: tensor<1x2x8x2xf32>, %m: tensor<8x8xi1>) -> tensor<1x2x8x2xf32> {
  %0 = aten.scaled_dot_product_attention %q, %q, %q mask(%m)
      : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<8x8xi1>) -> tensor<1x2x8x2xf32>
  return %0 : tensor<1x2x8x2xf32>
}
