// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | shard-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward(
func.func @forward(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x2x7x8xbf16>, %v: tensor<2x2x7x6xbf16>, %m: tensor<5x7xi1>) -> (tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>) {
  // The logsumexp is in the type in which sums are formed.
  // CHECK: aten.scaled_dot_product_flash_attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) gqa scale 5.000000e-01 :
  // CHECK-SAME: -> (tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>)
  %o, %l = aten.scaled_dot_product_flash_attention %q, %k, %v mask(%m) gqa scale 0.5
      : (tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x6xbf16>, tensor<5x7xi1>) -> (tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>)
  return %o, %l : tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>
}

// CHECK-LABEL: func.func @backward(
func.func @backward(%g: tensor<2x4x5x6xf64>, %q: tensor<2x4x5x8xf64>, %k: tensor<2x4x7x8xf64>, %v: tensor<2x4x7x6xf64>, %l: tensor<2x4x5xf64>) {
  // CHECK: aten.scaled_dot_product_flash_attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} causal :
  // CHECK-SAME: -> (tensor<2x4x5x8xf64>, tensor<2x4x7x8xf64>, tensor<2x4x7x6xf64>)
  %dq, %dk, %dv = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %g, %l causal
      : (tensor<2x4x5x6xf64>, tensor<2x4x5x8xf64>, tensor<2x4x7x8xf64>, tensor<2x4x7x6xf64>, tensor<2x4x5x6xf64>, tensor<2x4x5xf64>)
        -> (tensor<2x4x5x8xf64>, tensor<2x4x7x8xf64>, tensor<2x4x7x6xf64>)
  return
}

// Over some of the keys: the results, which are parts of sums, have their type. The first query is at any key.
// CHECK-LABEL: func.func @partial(
func.func @partial(%i: index, %g: tensor<2x4x5x6xbf16>, %q: tensor<2x4x5x8xbf16>, %k: tensor<2x4x7x8xbf16>, %v: tensor<2x4x7x6xbf16>, %l: tensor<2x4x5xf32>) {
  // CHECK: aten.scaled_dot_product_flash_attention %{{.*}}, %{{.*}}, %{{.*}} causal first %arg0 partial :
  // CHECK-SAME: -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  %o, %s = aten.scaled_dot_product_flash_attention %q, %k, %v causal first %i partial : (tensor<2x4x5x8xbf16>, tensor<2x4x7x8xbf16>, tensor<2x4x7x6xbf16>, index) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  // CHECK: aten.scaled_dot_product_flash_attention_backward %{{.*}} causal first 2 partial :
  // CHECK-SAME: -> (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>)
  %dq, %dk, %dv = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %g, %l causal first 2 partial
      : (tensor<2x4x5x6xbf16>, tensor<2x4x5x8xbf16>, tensor<2x4x7x8xbf16>, tensor<2x4x7x6xbf16>, tensor<2x4x5x6xbf16>, tensor<2x4x5xf32>)
        -> (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>)
  return
}

// -----
func.func @f(%q: tensor<2x4x5x8xf32>) {
  // expected-error @+2 {{says where its first query is among the keys, and is not causal}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q first 1 : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  return
}

// -----
func.func @f(%q: tensor<2x4x5x8xf32>) {
  // expected-error @+2 {{has its first query at -1, before the first key}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q causal first -1 : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  return
}

// -----
func.func @f(%g: tensor<2x4x5x6xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<1x2x7x8xf32>, %v: tensor<2x2x7x6xf32>, %o: tensor<2x4x5x6xf32>, %l: tensor<2x4x5xf32>) {
  // expected-error @+2 {{needs a key with the dims of query in front of its heads: expand it}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l gqa : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<2x2x7x6xf32>)
  return
}

// -----
func.func @f(%g: tensor<2x2x5x6xf32>, %q: tensor<2x2x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<1x2x7x6xf32>, %o: tensor<2x2x5x6xf32>, %l: tensor<2x2x5xf32>) {
  // expected-error @+2 {{needs a value with the dims of query in front of its last two: expand it}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l : (tensor<2x2x5x6xf32>, tensor<2x2x5x8xf32>, tensor<2x2x7x8xf32>, tensor<1x2x7x6xf32>, tensor<2x2x5x6xf32>, tensor<2x2x5xf32>) -> (tensor<2x2x5x8xf32>, tensor<2x2x7x8xf32>, tensor<1x2x7x6xf32>)
  return
}

// -----
func.func @f(%g: tensor<2x4x5x6xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x1x7x6xf32>, %o: tensor<2x4x5x6xf32>, %l: tensor<2x4x5xf32>) {
  // expected-error @+2 {{heads of key and value differ: 2 and 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l gqa : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x1x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x1x7x6xf32>)
  return
}

// -----
func.func @f(%g: tensor<2x4x5x5xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x6xf32>, %o: tensor<2x4x5x6xf32>, %l: tensor<2x4x5xf32>) {
  // expected-error @+2 {{needs grad_out as attention of these operands returns it, not 'tensor<2x4x5x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l gqa : (tensor<2x4x5x5xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>)
  return
}

// -----
func.func @f(%g: tensor<2x4x5x6xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x6xf32>, %o: tensor<2x4x5x6xf64>, %l: tensor<2x4x5xf32>) {
  // expected-error @+2 {{needs out as attention of these operands returns it, not 'tensor<2x4x5x6xf64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l gqa : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf64>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>)
  return
}

// -----
func.func @f(%g: tensor<2x4x5x6xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x6xf32>, %o: tensor<2x4x5x6xf32>, %l: tensor<2x4x5x1xf32>) {
  // expected-error @+2 {{needs the logsumexp of each query, of 'f32', not 'tensor<2x4x5x1xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %v, %o, %l gqa : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5x1xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>)
  return
}
