// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<f32>) {
  // expected-error @+2 {{needs a tensor of at least one dim}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.slice %x dim 0 [0 : 1 : 1] : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{step is 0; it must be positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.slice %x dim 0 [0 : 1 : 0] : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{start is dynamic, but has no operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.slice"(%x) <{dim = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0>, static_start = -9223372036854775808 : i64, static_end = 4 : i64}> : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: index) {
  // expected-error @+2 {{start is both static and an operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.slice"(%x, %n) <{dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0>, static_start = 0 : i64, static_end = 4 : i64}> : (tensor<4xf32>, index) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+2 {{needs a tensor of at least one dim}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.select %x dim 0 at 0 : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{index 4 is out of range for dim 0 of size 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.select %x dim 0 at 4 : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{sum of split_sizes and size of dim differ: 5 and 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:2 = aten.split_with_sizes %x [3, 2] dim 0 : (tensor<4xf32>) -> (tensor<3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %n: index) {
  // expected-error @+2 {{split_sizes has 0 dynamic entries but 1 index operands}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.split_with_sizes"(%x, %n) <{dim = 0 : i64, static_split_sizes = array<i64: 4>}> : (tensor<4xf32>, index) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{needs at least one tensor}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.cat"() <{dim = 0 : i64}> : () -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+2 {{needs tensors of at least one dim}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.cat %x, %x dim 0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %z: tensor<4x3xf32>) {
  // expected-error @+2 {{sizes of tensors differ: 2 and 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.cat %x, %z dim 0 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %z: tensor<4xf32>) {
  // expected-error @+2 {{tensors have 2 and 1 dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.cat %x, %z dim 0 : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{needs at least one tensor}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "aten.stack"() <{dim = 0 : i64}> : () -> tensor<f32>
  return
}
