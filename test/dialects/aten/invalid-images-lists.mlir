// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3x8x8xf32>) {
  // expected-error @+2 {{has one, two or three spatial dims, not 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [3, 3, 3, 3] stride [1] padding [0] dilation [1] : (tensor<3x8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<8x8xf32>) {
  // expected-error @+2 {{needs an image of 4 dims (batch, channels, height, width) or one less (no batch), not 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [3, 3] stride [1] padding [0] dilation [1] : (tensor<8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3xf32>) {
  // expected-error @+2 {{needs a weight of 3, 4 or 5 dims, not 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{groups must not be 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 0 : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{bias must have one element for each output channel}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w bias(%b) stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x0x8xf32>) {
  // expected-error @+2 {{has no elements to choose from}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [2, 2] stride [1] padding [1] dilation [1] : (tensor<3x0x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x8x8xf32>) {
  // expected-error @+2 {{stride must be one number for each of 2 spatial dims, or one for all, not 3 numbers}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [3, 3] stride [1, 1, 1] padding [0] dilation [1] : (tensor<3x8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<1x3x8xf32>) {
  // expected-error @+2 {{needs 4 dims (batch, channels, kernel, positions), not 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.fold %x to [8] stride [1] padding [0] dilation [1] : (tensor<1x3x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<1x3x2x9xf32>) {
  // expected-error @+2 {{has 9 positions in dim 2 of the image, where the window has 7}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.fold %x to [8] stride [1] padding [0] dilation [1] : (tensor<1x3x2x9xf32>) -> tensor<f32>
  return
}
