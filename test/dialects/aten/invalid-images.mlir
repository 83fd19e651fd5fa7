// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+2 {{channels of a group of the input and of the weight differ: 3 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{cannot part 3 channels into 2 groups}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] groups 2 : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x1x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{has a window of extent 5 for a dim of size 1 with 1 elements of padding}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [1, 0] dilation [2, 1] : (tensor<2x3x1x8xf32>, tensor<4x3x3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{needs an image of 4 dims (batch, channels, height, width), not 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x8x8xf32>) {
  // expected-error @+2 {{stride must not be 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [3, 3] stride [0] padding [0] dilation [1] : (tensor<3x8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x8x8xf32>) {
  // expected-error @+2 {{has a padding of 2, more than half of the window's extent 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.max_pool %x kernel [3, 3] stride [1] padding [2] dilation [1] : (tensor<3x8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<3x8x8xf32>) {
  // expected-error @+2 {{must not divide by 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.avg_pool %x kernel [3, 3] stride [1] padding [1] divisor 0 : (tensor<3x8x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3x8x8xf32>, %c: tensor<4xf32>) {
  // expected-error @+2 {{must have one element for each channel}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = aten.batch_norm %x mean(%c) variance(%c) eps 1.0e-5 : (tensor<2x3x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x8x8xf32>
  return
}
