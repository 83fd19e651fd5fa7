// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<f32>, %w: tensor<4x8xf32>) {
  // expected-error @+2 {{needs an input of at least one dim and a weight of one or two dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.linear %x, %w : (tensor<f32>, tensor<4x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %w: tensor<4x7xf32>) {
  // expected-error @+2 {{last dims of input and weight differ: 8 and 7}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.linear %x, %w : (tensor<2x8xf32>, tensor<4x7xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>, %b: tensor<3x2x4xf32>) {
  // expected-error @+2 {{bias does not broadcast to the product's shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.linear %x, %w, %b : (tensor<2x8xf32>, tensor<4x8xf32>, tensor<3x2x4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %w: tensor<4x8xf64>) {
  // expected-error @+2 {{operands have element types 'f32' and 'f64'; this op does not promote}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.linear %x, %w : (tensor<2x8xf32>, tensor<4x8xf64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>, %w: tensor<4xf32>) {
  // expected-error @+2 {{needs operands of at least one dim}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.matmul %x, %w : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+2 {{contracted dims differ: 3 and 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.matmul %x, %w : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x2x3xf32>, %w: tensor<3x3x5xf32>) {
  // expected-error @+2 {{operands do not broadcast: sizes 2 and 3 at dim 0 of the result}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.matmul %x, %w : (tensor<2x2x3xf32>, tensor<3x3x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+2 {{multiplies tensors of 2 dims, not 3 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.mm %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %w: tensor<3x4x5xf32>) {
  // expected-error @+2 {{batch sizes differ: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.bmm %x, %w : (tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%s: tensor<2x2x5xf32>, %x: tensor<2x4xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+2 {{self does not broadcast to the product's shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.addmm %s, %x, %w : (tensor<2x2x5xf32>, tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<8xf32>, %k: tensor<2x8xf32>) {
  // expected-error @+2 {{needs query, key and value of at least two dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %k, %k : (tensor<8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>, %k: tensor<2x7xf32>) {
  // expected-error @+2 {{last dims of query and key differ: 8 and 7}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %k, %k : (tensor<2x8xf32>, tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>, %v: tensor<3x8xf32>) {
  // expected-error @+2 {{lengths of key and value differ: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %v : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>) {
  // expected-error @+2 {{gqa needs a dim of heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q gqa : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<4x2x8xf32>, %k: tensor<3x2x8xf32>) {
  // expected-error @+2 {{gqa: 4 query heads are no multiple of 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %k, %k gqa : (tensor<4x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{attn_mask needs at least two dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q mask(%m) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>, %m: tensor<3x2x2xf32>) {
  // expected-error @+2 {{attn_mask does not broadcast to the scores}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q mask(%m) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<3x2x2xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<2x8xf32>, %m: tensor<2x2xi64>) {
  // expected-error @+2 {{attn_mask must be bool or have the element type of query}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.scaled_dot_product_attention %q, %q, %q mask(%m) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x2xi64>) -> tensor<f32>
  return
}
