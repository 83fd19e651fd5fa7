// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3xi64>, %v: tensor<3x5xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{adds values only: aten.index_write is the form without 'accumulate'}}
  %y = aten.index_put %x[%i] of %v : (tensor<4x5xf32>, tensor<3xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3xi64>, %v: tensor<2x5xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{dim 0}}
  %y = aten.index_put %x[%i] of %v accumulate : (tensor<4x5xf32>, tensor<3xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<1xi64>, %v: tensor<3x5xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{values do not broadcast to the shape that the indices name}}
  %y = aten.index_put %x[%i] of %v accumulate : (tensor<4x5xf32>, tensor<1xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x2xi64>, %v: tensor<3x2xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{needs self, index and src of equally many dims, at least one, not of 1, 2 and 2}}
  %y = aten.scatter_add %x dim 0 at %i of %v : (tensor<4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3x2xi64>, %v: tensor<2x2xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{index has size 3 at dim 0, src only 2}}
  %y = aten.scatter_add %x dim 0 at %i of %v : (tensor<4x2xf32>, tensor<3x2xi64>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x1xf32>, %i: tensor<3x2xi64>, %v: tensor<3x2xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{index has size 2 at dim 1, self only 1}}
  %y = aten.scatter_add %x dim 0 at %i of %v : (tensor<4x1xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<4x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{sums over dims [0, 1] of a tensor of 2 dims and [0] of one of 2}}
  %z = aten.tensordot %x, %y dims [0, 1] [0] : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{summed dims}}
  %z = aten.tensordot %x, %y dims [1] [0] : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>, %v: tensor<4x2xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{has no way "sum" to write; it must be one of "assign", "prod", "amax", "amin"}}
  %y = aten.scatter %x dim 1 at %i of %v reduce "sum" : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{keeps 6 elements of a dim of size 5}}
  %v, %i = aten.sort %x dim 1 count 6 : (tensor<4x5xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>)
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{needs a tensor of at least one dim}}
  %v, %i = aten.sort %x dim 0 : (tensor<f32>) -> (tensor<f32>, tensor<i64>)
  return
}
