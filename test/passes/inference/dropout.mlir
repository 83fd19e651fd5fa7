// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-to-inference --split-input-file 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t.said
// SAID: dropout.mlir:[[#]]:{{[0-9]+}}: remark: 'forward' goes on to draw random numbers in inference, first in dropout.mlir:[[#]]: they are not those of a dropout in a form that is known
// SAID: dropout.mlir:[[#]]:{{[0-9]+}}: remark: the attention in dropout.mlir:[[#]] stays composed of products and a softmax in inference: a pass has removed a value that it was made of
// SAID-NOT: remark:

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>

// Nothing is drawn any more, and the offset is not written back; the users get the layout that they had.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<8x4xf32, #{{.*}}> {dist.kind = "output", dist.name = "y"})
// CHECK-NOT: aten.random
// CHECK-NOT: aten.dropout
// CHECK: %[[X:.*]] = dist.redistribute %arg0 : tensor<8x4xf32, #R> to tensor<8x4xf32, #S0dp>
// CHECK-NEXT: %[[Y:.*]] = aten.relu %[[X]]
// CHECK-NEXT: return %[[Y]]
module attributes {dist.mesh = #mesh} {
func.func @forward(%x: tensor<8x4xf32, #R> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<8x4xf32, #S> {dist.kind = "output", dist.name = "y"},
        tensor<i64, #R> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %r = aten.random "uniform" [8, 4] f32 seed(%seed) offset(%offset) : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<8x4xf32, #S>
  %p = aten.constant dense<0.5> : tensor<f32> -> tensor<f32, #R>
  %m = aten.lt %r, %p : (tensor<8x4xf32, #S>, tensor<f32, #R>) -> tensor<8x4xi1, #S>
  %h = dist.redistribute %x : tensor<8x4xf32, #R> to tensor<8x4xf32, #S>
  %d = aten.dropout %h, %m {p = 0.5 : f64} : (tensor<8x4xf32, #S>, tensor<8x4xi1, #S>) -> tensor<8x4xf32, #S>
  %y = aten.relu %d : (tensor<8x4xf32, #S>) -> tensor<8x4xf32, #S>
  %c = aten.constant dense<32> : tensor<i64> -> tensor<i64, #R>
  %next = aten.add %offset, %c : (tensor<i64, #R>, tensor<i64, #R>) -> tensor<i64, #R>
  return %y, %next : tensor<8x4xf32, #S>, tensor<i64, #R>
}
}

// -----

// Noise that is no dropout is drawn in inference too, with other numbers in each run.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: dist.kind = "state_mutation", dist.name = "random.offset"
// CHECK: aten.random
// CHECK-NOT: aten.dropout
func.func @forward(%x: tensor<4xf32> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<4xf32> {dist.kind = "output", dist.name = "y"},
        tensor<i64> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %r = aten.random "normal" [4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  %y = aten.add %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = aten.isnan %x : (tensor<4xf32>) -> tensor<4xi1>
  %d = aten.dropout %y, %m {p = 0.5 : f64} : (tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  %c = aten.constant dense<4> : tensor<i64>
  %next = aten.add %offset, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %d, %next : tensor<4xf32>, tensor<i64>
}

// -----

// What PyTorch's decompositions leave of a dropout of channels, x * (kept / 0.7), and of elements, (kept * x) * (1 / 0.75). A quotient by another
// number is no dropout.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x3x4xf32>
// CHECK-NOT: aten.random
// CHECK: aten.add %[[X]], %[[X]]
func.func @forward(%x: tensor<2x3x4xf32> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<2x3x4xf32> {dist.kind = "output", dist.name = "y"}) {
  %r = aten.random "uniform" [2, 3, 1] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<2x3x1xf32>
  %q = aten.constant dense<0.7> : tensor<f32>
  %m = aten.lt %r, %q : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xi1>
  %k = aten.to_copy %m to f32 : (tensor<2x3x1xi1>) -> tensor<2x3x1xf32>
  %c = aten.clone %k : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %d = aten.div %c, %q : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %channels = aten.mul %x, %d : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %n = aten.random "uniform" [2, 3, 4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<2x3x4xf32>
  %p = aten.constant dense<0.25> : tensor<f32>
  %g = aten.gt %n, %p : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xi1>
  %kx = aten.mul %g, %x : (tensor<2x3x4xi1>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s = aten.constant dense<1.33333337> : tensor<f32>
  %elements = aten.mul %kx, %s : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %y = aten.add %channels, %elements : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: func.func @forward
// CHECK: aten.random
// CHECK: aten.mul
func.func @forward(%x: tensor<4xf32> {dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<4xf32> {dist.kind = "output", dist.name = "y"}) {
  %r = aten.random "uniform" [4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  %q = aten.constant dense<0.7> : tensor<f32>
  %by = aten.constant dense<0.5> : tensor<f32>
  %m = aten.lt %r, %q : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
  %k = aten.to_copy %m to f32 : (tensor<4xi1>) -> tensor<4xf32>
  %d = aten.div %k, %by : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %y = aten.mul %x, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Attention that drops weights is one op again; it is placed around the layouts that are there. The mask was found to be causal.
// CHECK-LABEL: func.func @forward
// CHECK: %[[A:.*]] = aten.scaled_dot_product_attention %{{.*}}, %{{.*}}, %{{.*}} causal gqa scale 2.500000e-01 :
// CHECK-SAME: -> tensor<2x4x3x8xf32>
// CHECK-NEXT: %[[R:.*]] = dist.redistribute %[[A]] : tensor<2x4x3x8xf32> to tensor<2x4x3x8xf32, #S0dp>
// CHECK-NEXT: return %[[R]]
#mesh = #dist.mesh<["dp" = 2]>
#S = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
func.func @forward(%q: tensor<2x4x3x8xf32, #S> {dist.kind = "input", dist.name = "q"},
                   %k: tensor<2x2x3x8xf32, #S> {dist.kind = "input", dist.name = "k"},
                   %mask: tensor<2x1x3x3xi1, #S> {dist.kind = "input", dist.name = "mask"},
                   %composed: tensor<2x4x3x8xf32, #S> {dist.kind = "input", dist.name = "composed"})
    -> (tensor<2x4x3x8xf32, #S> {dist.kind = "output", dist.name = "y"}) {
  %0 = aten.alias %q {aten.training_attention = distinct[0]<>, aten.attention_part = "query"} : (tensor<2x4x3x8xf32, #S>) -> tensor<2x4x3x8xf32, #S>
  %1 = aten.alias %k {aten.training_attention = distinct[0]<>, aten.attention_part = "key"} : (tensor<2x2x3x8xf32, #S>) -> tensor<2x2x3x8xf32, #S>
  %2 = aten.alias %k {aten.training_attention = distinct[0]<>, aten.attention_part = "value"} : (tensor<2x2x3x8xf32, #S>) -> tensor<2x2x3x8xf32, #S>
  %3 = aten.alias %mask {aten.training_attention = distinct[0]<>, aten.attention_part = "mask", aten.attention_mask_form = "causal"} : (tensor<2x1x3x3xi1, #S>) -> tensor<2x1x3x3xi1, #S>
  %4 = aten.alias %composed {aten.training_attention = distinct[0]<>, aten.attention_part = "result", aten.attention_options = {attn_mask, enable_gqa, scale = 2.500000e-01 : f64}} : (tensor<2x4x3x8xf32, #S>) -> tensor<2x4x3x8xf32, #S>
  return %4 : tensor<2x4x3x8xf32, #S>
}
}

// -----

// A key that is gone.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: scaled_dot_product_attention
func.func @forward(%x: tensor<2x4xf32> {dist.kind = "input", dist.name = "x"}) -> (tensor<2x4xf32> {dist.kind = "output", dist.name = "y"}) {
  %0 = aten.alias %x {aten.training_attention = distinct[0]<>, aten.attention_part = "query"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = aten.alias %0 {aten.training_attention = distinct[0]<>, aten.attention_part = "result", aten.attention_options = {}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
