// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How transforms along sharded dims are computed.
// RUN: shard-opt %s --split-input-file --dist-split-transforms --canonicalize | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#S = #dist.layout<#mesh, [S(0)]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh} {
// Two low frequencies and a high one: a product with their columns.
// CHECK-LABEL: func.func @few_are_read
// CHECK-NOT: aten.fft
// CHECK: %[[M:.*]] = aten.constant {{.*}} : tensor<6x128xf32>
// CHECK: %[[T:.*]] = aten.permute %arg0 [1, 0, 2]
// CHECK: %[[V:.*]] = aten.view %[[T]] [8, 128]
// CHECK: %[[P:.*]] = aten.linear %[[V]], %[[M]] {of_complex} : (tensor<8x128xf32>, tensor<6x128xf32>) -> tensor<8x6xf32>
// CHECK: %[[W:.*]] = aten.view %[[P]] [8, 3, 2]
// CHECK: %[[Y:.*]] = aten.permute %[[W]] [1, 0, 2]
// CHECK: aten.slice %[[Y]] dim 0 [0 : 2 : 1]
// CHECK: aten.slice %[[Y]] dim 0 [2 : 3 : 1]
func.func @few_are_read(%x: tensor<64x8x2xf32> {dist.annotation = #S}) -> (tensor<2x8x2xf32> {dist.annotation = #R}, tensor<1x8x2xf32> {dist.annotation = #R}) {
  %f = aten.fft_c2c %x dim 0 forward : (tensor<64x8x2xf32>) -> tensor<64x8x2xf32>
  %y = aten.slice %f dim 0 [0 : 2 : 1] : (tensor<64x8x2xf32>) -> tensor<2x8x2xf32>
  %z = aten.slice %f dim 0 [63 : 64 : 1] : (tensor<64x8x2xf32>) -> tensor<1x8x2xf32>
  return %y, %z : tensor<2x8x2xf32>, tensor<1x8x2xf32>
}

// The inverse of a few: each rank makes its rows.
// CHECK-LABEL: func.func @few_are_filled
// CHECK-NOT: aten.fft
// CHECK: aten.linear %{{.*}}, %{{.*}} {of_complex} : (tensor<8x4xf32>, tensor<32x4xf32>) -> tensor<8x32xf32>
func.func @few_are_filled(%y: tensor<2x8x2xf32>) -> (tensor<16x8x2xf32> {dist.annotation = #S}) {
  %p = aten.constant_pad_nd %y [0, 0, 0, 0, 0, 14] : (tensor<2x8x2xf32>) -> tensor<16x8x2xf32>
  %f = aten.fft_c2c %p dim 0 normalization 2 : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  return %f : tensor<16x8x2xf32>
}

// A filter of all frequencies: the shards move to the other dim, and back behind the inverse.
// CHECK-LABEL: func.func @filter
// CHECK: %[[C:.*]] = dist.constrain %arg0 : tensor<16x8x2xf32> to #S1tp
// CHECK: aten.fft_c2c %[[C]] dim 0 forward
// CHECK-NOT: dist.constrain
// CHECK: aten.fft_c2c %{{.*}} dim 0 normalization 2
func.func @filter(%x: tensor<16x8x2xf32> {dist.annotation = #S}, %w: tensor<16x8x2xf32>) -> (tensor<16x8x2xf32> {dist.annotation = #S}) {
  %f = aten.fft_c2c %x dim 0 forward : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  %p = aten.mul %f, %w : (tensor<16x8x2xf32>, tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  %y = aten.fft_c2c %p dim 0 normalization 2 : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  return %y : tensor<16x8x2xf32>
}

// Along a dim that is whole nothing changes.
// CHECK-LABEL: func.func @other_dim
// CHECK: aten.fft_c2c %arg0 dim 1 forward
func.func @other_dim(%x: tensor<16x8x2xf32> {dist.annotation = #S}) -> tensor<16x2x2xf32> {
  %f = aten.fft_c2c %x dim 1 forward : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  %y = aten.slice %f dim 1 [0 : 2 : 1] : (tensor<16x8x2xf32>) -> tensor<16x2x2xf32>
  return %y : tensor<16x2x2xf32>
}
}

// -----

// A rank has fewer rows than are kept: the rows move.
#mesh = #dist.mesh<["tp" = 8]>
#S = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
// CHECK-LABEL: func.func @half_is_kept
// CHECK: dist.constrain %arg0
// CHECK: aten.fft_c2c
func.func @half_is_kept(%x: tensor<16x8x2xf32> {dist.annotation = #S}, %w: tensor<8x8x2xf32>) -> (tensor<16x8x2xf32> {dist.annotation = #S}) {
  %f = aten.fft_c2c %x dim 0 forward : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  %s = aten.slice %f dim 0 [0 : 8 : 1] : (tensor<16x8x2xf32>) -> tensor<8x8x2xf32>
  %m = aten.mul %s, %w : (tensor<8x8x2xf32>, tensor<8x8x2xf32>) -> tensor<8x8x2xf32>
  %p = aten.constant_pad_nd %m [0, 0, 0, 0, 0, 8] : (tensor<8x8x2xf32>) -> tensor<16x8x2xf32>
  %y = aten.fft_c2c %p dim 0 normalization 2 : (tensor<16x8x2xf32>) -> tensor<16x8x2xf32>
  return %y : tensor<16x8x2xf32>
}
}
