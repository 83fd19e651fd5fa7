// Zeros around an image become padding of what slides over it.
// RUN: shard-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @convolution
func.func @convolution(%x: tensor<1x2x8x6xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32> {
  // CHECK-NOT: constant_pad_nd
  // CHECK: aten.convolution %arg0, %arg1 stride [1, 1] padding [1, 2] dilation [1, 1]
  %p = aten.constant_pad_nd %x [1, 1, 1, 1] : (tensor<1x2x8x6xf32>) -> tensor<1x2x10x8xf32>
  %y = aten.convolution %p, %w stride [1, 1] padding [0, 1] dilation [1, 1] : (tensor<1x2x10x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: func @windows
func.func @windows(%x: tensor<1x2x8x6xf32>) -> tensor<1x2x3x3x8x4xf32> {
  // CHECK-NOT: constant_pad_nd
  // CHECK: aten.windows %arg0 kernel [3, 3] stride [1, 1] padding [1, 0] dilation [1, 1]
  %p = aten.constant_pad_nd %x [0, 0, 1, 1] : (tensor<1x2x8x6xf32>) -> tensor<1x2x10x6xf32>
  %y = aten.windows %p kernel [3, 3] stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x2x10x6xf32>) -> tensor<1x2x3x3x8x4xf32>
  return %y : tensor<1x2x3x3x8x4xf32>
}

// Other numbers, more on one side, elements that are cut off, other dims.
// CHECK-LABEL: func @others
func.func @others(%x: tensor<1x2x8x6xf32>, %w: tensor<4x2x3x3xf32>, %v: tensor<4x4x3x3xf32>)
    -> (tensor<1x4x8x4xf32>, tensor<1x4x7x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x6x4xf32>) {
  // CHECK-COUNT-4: constant_pad_nd
  %a = aten.constant_pad_nd %x [0, 0, 1, 1] {value = 1.0 : f64} : (tensor<1x2x8x6xf32>) -> tensor<1x2x10x6xf32>
  %b = aten.constant_pad_nd %x [0, 0, 0, 1] : (tensor<1x2x8x6xf32>) -> tensor<1x2x9x6xf32>
  %c = aten.constant_pad_nd %x [0, 0, -1, -1] : (tensor<1x2x8x6xf32>) -> tensor<1x2x6x6xf32>
  %d = aten.constant_pad_nd %x [0, 0, 0, 0, 1, 1] : (tensor<1x2x8x6xf32>) -> tensor<1x4x8x6xf32>
  %e = aten.convolution %a, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x2x10x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x4xf32>
  %f = aten.convolution %b, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x2x9x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x7x4xf32>
  %g = aten.convolution %c, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x2x6x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32>
  %h = aten.convolution %d, %v stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x4xf32>
  return %e, %f, %g, %h : tensor<1x4x8x4xf32>, tensor<1x4x7x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x6x4xf32>
}
