// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xf32>, %z: tensor<3xf32>) {
  // expected-error @+2 {{operands do not broadcast: sizes 2 and 3 at dim 0 of the result}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.add %x, %z : (tensor<2xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2xf8E5M2>, %z: tensor<2xf8E4M3FN>) {
  // expected-error @+2 {{element types of operands have no common type in PyTorch's promotion rules}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.add %x, %z : (tensor<2xf8E5M2>, tensor<2xf8E4M3FN>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{approximate is "erf"; it must be one of "none", "tanh"}}
  %y = aten.gelu %x {approximate = "erf"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{rounding_mode is "ceil"; it must be one of "trunc", "floor"}}
  %y = aten.div %x, %x {rounding_mode = "ceil"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %m: tensor<2xi1>) {
  // expected-error @+2 {{value must be a 0-dim tensor}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.masked_fill %x, %m, %x : (tensor<2xf32>, tensor<2xi1>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+2 {{'none' is no element type}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.to_copy %x to none : (tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%w: tensor<8xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{needs a weight of two dims, not 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.embedding %w at %i : (tensor<8xf32>, tensor<2xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{self has 2 dims and index 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.gather %x dim 0 at %i : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %i: tensor<2x4xi64>) {
  // expected-error @+2 {{index has size 4 at dim 1, self only 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.gather %x dim 0 at %i : (tensor<2x3xf32>, tensor<2x4xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %i: tensor<2x4xi64>) {
  // expected-error @+2 {{index must be a vector}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.index_select %x dim 0 at %i : (tensor<2x3xf32>, tensor<2x4xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{indices_at must list dims of self in ascending order}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.index"(%x, %i, %i) <{indices_at = array<i64: 1, 0>}> : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{has 1 indices for 2 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.index"(%x, %i) <{indices_at = array<i64: 0, 1>}> : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+2 {{normalized_shape has 2 entries for a tensor of 1 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.layer_norm %x [2, 3] : (tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{normalized_shape is not the input's trailing shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.rms_norm %x [4] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error @+2 {{weight and bias must have the shape normalized_shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.layer_norm %x [3] weight(%w) : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<6xf32>) {
  // expected-error @+2 {{needs an input of at least two dims: batch and channels}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.group_norm %x groups 2 : (tensor<6xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @+2 {{cannot part 6 channels into 4 groups}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.group_norm %x groups 4 : (tensor<2x6xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %w: tensor<3xf32>) {
  // expected-error @+2 {{weight and bias must have one element for each channel}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.group_norm %x groups 2 weight(%w) : (tensor<2x6xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x0xf32>) {
  // expected-error @+2 {{reduces no elements, and has no value for that}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.argmax %x dim 1 : (tensor<2x0xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xi64>) {
  // expected-error @+2 {{has no mean of integers or bools: give a float dtype}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.mean %x dim [1] : (tensor<2x3xi64>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<3xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.sum %x dim [0] : (tensor<2x3xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @dropout(%x: tensor<4xf32>, %m: tensor<4xi1>) -> tensor<4xf32> {
  // expected-error@+2 {{drops with a probability between 0 and 1, not 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = aten.dropout %x, %m {p = 2.0 : f64} : (tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
