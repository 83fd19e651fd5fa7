// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @other_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'aten.lookup_line' is for aten.index_select, and for an aten.index_put that adds at a vector of positions along one dim}}
  %0 = aten.relu %x {aten.lookup_line = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @two_dims(%x: tensor<4x5xf32>, %i: tensor<3xi64>, %v: tensor<3xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{is for aten.index_select, and for an aten.index_put that adds at a vector of positions along one dim}}
  %0 = aten.index_put %x[%i, %i] of %v accumulate {aten.lookup_line = {}}
    : (tensor<4x5xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

func.func @no_dictionary(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{'aten.lookup_line' must be a dictionary of i64 numbers, got 3 : i64}}
  %0 = aten.index_select %x dim 0 at %i {aten.lookup_line = 3 : i64} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @unknown_name(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{and the unit aligns_corners; 'behind' is none of them}}
  %0 = aten.index_select %x dim 0 at %i {aten.lookup_line = {behind = 1}} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @short_number(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{and the unit aligns_corners; 'after' is none of them}}
  %0 = aten.index_select %x dim 0 at %i {aten.lookup_line = {after = 1 : i8}} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @negative(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{must have a number from 0 to 1048576 as 'before'}}
  %0 = aten.index_select %x dim 0 at %i {aten.lookup_line = {before = -1}} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @half_a_scale(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{must have both numerator and denominator, or neither where they are the sizes}}
  %0 = aten.index_select %x dim 0 at %i {aten.lookup_line = {numerator = 2}} : (tensor<4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
