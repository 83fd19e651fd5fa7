// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{turns 6 elements into 8}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.view %x [2, 4] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{size has the negative entry -2}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.view %x [-2, -3] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{size has 1 entries for a tensor of 2 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.expand %x [3] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{cannot repeat dim 0 of size 2 to size 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.expand %x [4, 3] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{dims has 1 entries for a tensor of 2 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.permute %x [1] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{dims names dim 1 twice}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.permute %x [1, 1] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{dim1 is 2, out of range for a tensor of 2 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.transpose %x [0, 2] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{cannot remove dim 1 of size 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.squeeze %x dim [1] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{pad cuts more from dim 1 than there is}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.constant_pad_nd %x [-2, -2] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{pad has 1 entries for a tensor of 2 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.constant_pad_nd %x [1] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+2 {{needs a tensor of at least two dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.tril %x : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{needs self and src of one shape: expand src first}}
  // expected-error @+1 {{failed to infer returned types}}
  %z = aten.copy %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+2 {{sizes of self and src differ: 3 and 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %z = aten.copy %x, %y : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
