// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transforms of what is read, and of what is not zero.
// RUN: shard-opt %s --aten-narrow-fourier --cse --canonicalize | FileCheck %s

// The lowest frequencies of either sign, of three dims: each transform has those dims short that were transformed before it.
// CHECK-LABEL: func @lowest
// CHECK: %[[Z:.*]] = aten.fft_r2c %arg0 dim 3 onesided : (tensor<2x16x12x10xf32>) -> tensor<2x16x12x6x2xf32>
// CHECK: %[[S:.*]] = aten.slice %[[Z]] dim 3 [0 : 2 : 1]
// CHECK: %[[Y:.*]] = aten.fft_c2c %[[S]] dim 2 forward : (tensor<2x16x12x2x2xf32>) -> tensor<2x16x12x2x2xf32>
// CHECK-DAG: %[[LOW:.*]] = aten.slice %[[Y]] dim 2 [0 : 3 : 1]
// CHECK-DAG: %[[HIGH:.*]] = aten.slice %[[Y]] dim 2 [9 : 12 : 1]
// CHECK: %[[BOTH:.*]] = aten.cat %[[LOW]], %[[HIGH]] dim 2
// CHECK: aten.fft_c2c %[[BOTH]] dim 1 forward : (tensor<2x16x6x2x2xf32>) -> tensor<2x16x6x2x2xf32>
// CHECK-NOT: aten.fft
func.func @lowest(%x: tensor<2x16x12x10xf32>) -> (tensor<2x4x3x2x2xf32>, tensor<2x4x3x2x2xf32>) {
  %r = aten.fft_r2c %x dim 3 onesided : (tensor<2x16x12x10xf32>) -> tensor<2x16x12x6x2xf32>
  %c = aten.fft_c2c %r dim 2 forward : (tensor<2x16x12x6x2xf32>) -> tensor<2x16x12x6x2xf32>
  %f = aten.fft_c2c %c dim 1 forward : (tensor<2x16x12x6x2xf32>) -> tensor<2x16x12x6x2xf32>
  %0 = aten.slice %f dim 1 [0 : 4 : 1] : (tensor<2x16x12x6x2xf32>) -> tensor<2x4x12x6x2xf32>
  %1 = aten.slice %0 dim 2 [0 : 3 : 1] : (tensor<2x4x12x6x2xf32>) -> tensor<2x4x3x6x2xf32>
  %2 = aten.slice %1 dim 3 [0 : 2 : 1] : (tensor<2x4x3x6x2xf32>) -> tensor<2x4x3x2x2xf32>
  %3 = aten.slice %f dim 1 [12 : 16 : 1] : (tensor<2x16x12x6x2xf32>) -> tensor<2x4x12x6x2xf32>
  %4 = aten.slice %3 dim 2 [9 : 12 : 1] : (tensor<2x4x12x6x2xf32>) -> tensor<2x4x3x6x2xf32>
  %5 = aten.slice %4 dim 3 [0 : 2 : 1] : (tensor<2x4x3x6x2xf32>) -> tensor<2x4x3x2x2xf32>
  return %2, %5 : tensor<2x4x3x2x2xf32>, tensor<2x4x3x2x2xf32>
}

// Zeros that are written over in part, as an export of `out[:, :3] = y` has them.
// CHECK-LABEL: func @zeros
// CHECK: %[[F:.*]] = aten.fft_c2c %{{.*}} dim 0 normalization 2 : (tensor<8x3x2xf32>) -> tensor<8x3x2xf32>
// CHECK: %[[W:.*]] = aten.constant_pad_nd %[[F]] [0, 0, 0, 4] : (tensor<8x3x2xf32>) -> tensor<8x7x2xf32>
// CHECK: aten.fft_c2r %[[W]] dim 1 to [12]
func.func @zeros(%y: tensor<8x3x2xf32>) -> tensor<8x12xf32> {
  %zero = aten.constant dense<0.0> : tensor<f32>
  %z = aten.expand %zero [8, 7, 2] : (tensor<f32>) -> tensor<8x7x2xf32>
  %0 = aten.slice %z dim 1 [0 : 3 : 1] : (tensor<8x7x2xf32>) -> tensor<8x3x2xf32>
  %1 = aten.copy %0, %y : (tensor<8x3x2xf32>, tensor<8x3x2xf32>) -> tensor<8x3x2xf32>
  %2 = aten.slice %z dim 1 [3 : 7 : 1] : (tensor<8x7x2xf32>) -> tensor<8x4x2xf32>
  %3 = aten.cat %1, %2 dim 1 : (tensor<8x3x2xf32>, tensor<8x4x2xf32>) -> tensor<8x7x2xf32>
  %4 = aten.fft_c2c %3 dim 0 normalization 2 : (tensor<8x7x2xf32>) -> tensor<8x7x2xf32>
  %5 = aten.fft_c2r %4 dim 1 to [12] normalization 2 : (tensor<8x7x2xf32>) -> tensor<8x12xf32>
  return %5 : tensor<8x12xf32>
}

// What another op reads whole stays whole.
// CHECK-LABEL: func @read_whole
// CHECK: aten.fft_c2c %arg0 dim 0 forward : (tensor<8x7x2xf32>) -> tensor<8x7x2xf32>
func.func @read_whole(%z: tensor<8x7x2xf32>) -> (tensor<8x3x2xf32>, tensor<8x7x2xf32>) {
  %f = aten.fft_c2c %z dim 0 forward : (tensor<8x7x2xf32>) -> tensor<8x7x2xf32>
  %s = aten.slice %f dim 1 [0 : 3 : 1] : (tensor<8x7x2xf32>) -> tensor<8x3x2xf32>
  %m = aten.mul %f, %f : (tensor<8x7x2xf32>, tensor<8x7x2xf32>) -> tensor<8x7x2xf32>
  return %s, %m : tensor<8x3x2xf32>, tensor<8x7x2xf32>
}
