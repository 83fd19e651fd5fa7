// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x8x16xf32>, %i: tensor<5xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{numbers of rows differ: 6 and 5}}
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32>, tensor<4x8x16xf32>, tensor<5xi64>) -> tensor<6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<6x8xf32>, %w: tensor<4x7x16xf32>, %i: tensor<6xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{contracted dims differ: 8 and 7}}
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32>, tensor<4x7x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %i: tensor<6xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{needs matrices in three dims, not 2}}
  %y = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32>, tensor<8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6x8xf32>, %w: tensor<4x8x16xf32>, %i: tensor<6xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{needs rows in two dims and an index of one, not 3 and 1}}
  %y = aten.indexed_mm %x, %w at %i : (tensor<2x6x8xf32>, tensor<4x8x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<6x8xf32>, %z: tensor<6xf32>, %i: tensor<6xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{needs rows in two dims on both sides}}
  %y = aten.indexed_outer %x, %z at %i groups [4] : (tensor<6x8xf32>, tensor<6xf32>, tensor<6xi64>) -> tensor<4x8x1xf32>
  return
}

// -----

func.func @f(%x: tensor<6x8xf32>, %z: tensor<6x3xf32>, %i: tensor<6xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{has one number of groups, not 2}}
  %y = aten.indexed_outer %x, %z at %i groups [4, 2] : (tensor<6x8xf32>, tensor<6x3xf32>, tensor<6xi64>) -> tensor<4x8x3xf32>
  return
}
