// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-assign-buffers --split-input-file --verify-diagnostics | FileCheck %s

// What attention reads and writes; the target decides how.
// CHECK-LABEL: func.func @grouped_heads(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<2x4x70x64xf32> {{[^,]*}}, %[[K:[a-z0-9]+]]: memref<2x2x33x64xf32> {{[^,]*}}, %[[V:[a-z0-9]+]]: memref<2x2x33x64xf32>
// The default of the scale: one over the root of 64.
// CHECK:         exec.attention %[[Q]], %[[K]], %[[V]] -> %{{.*}} scale 1.250000e-01 name "attention"
func.func @grouped_heads(%q: tensor<2x4x70x64xf32>, %k: tensor<2x2x33x64xf32>, %v: tensor<2x2x33x64xf32>) -> tensor<2x4x70x64xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %v gqa : (tensor<2x4x70x64xf32>, tensor<2x2x33x64xf32>, tensor<2x2x33x64xf32>) -> tensor<2x4x70x64xf32>
  return %0 : tensor<2x4x70x64xf32>
}

// -----

// A mask is broadcast by strides of 0, not by a copy; heads that were split from one dim are read where they are.
// CHECK-LABEL: func.func @mask_and_strides
// CHECK:         exec.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} -> %{{.*}} scale
// CHECK-SAME:    : memref<3x2x7x8xf32, strided<[112, 8, 16, 1]{{.*}} mask memref<3x2x7x7xi8, strided<[7, 0, 0, 1]{{.*}} ->
func.func @mask_and_strides(%x: tensor<3x7x16xf32>, %m: tensor<3x1x1x7xi1>) -> tensor<3x2x7x8xf32> {
  %0 = aten.view %x [3, 7, 2, 8] : (tensor<3x7x16xf32>) -> tensor<3x7x2x8xf32>
  %1 = aten.transpose %0 [1, 2] : (tensor<3x7x2x8xf32>) -> tensor<3x2x7x8xf32>
  %2 = aten.scaled_dot_product_attention %1, %1, %1 mask(%m) : (tensor<3x2x7x8xf32>, tensor<3x2x7x8xf32>, tensor<3x2x7x8xf32>, tensor<3x1x1x7xi1>) -> tensor<3x2x7x8xf32>
  return %2 : tensor<3x2x7x8xf32>
}

// -----

// A head for each query; what the backward reads is where the forward left it.
// CHECK-LABEL: func.func @backward(
// CHECK: %[[O:.*]] = exec.alloc : memref<4x7x8xf32>
// CHECK: %[[L:.*]] = exec.alloc : memref<4x7xf32>
// CHECK: memref.reinterpret_cast %[[O]] {{.*}} sizes: [1, 4, 7, 8]
// CHECK: %[[SUMS:.*]] = memref.reinterpret_cast %[[L]] {{.*}} sizes: [1, 4, 7]
// CHECK: exec.attention {{.*}} logsumexp %[[SUMS]] causal scale 0.35355{{[0-9]+}} name "attention"
// CHECK: memref.reinterpret_cast %[[O]] {{.*}} sizes: [1, 4, 7, 8]
// CHECK: %[[AGAIN:.*]] = memref.reinterpret_cast %[[L]] {{.*}} sizes: [1, 4, 7]
// CHECK: exec.attention_backward {{.*}}, %[[AGAIN]] -> %{{.*}}, %{{.*}}, %{{.*}} causal scale 0.35355{{[0-9]+}} name "attention_backward"
func.func @backward(%g: tensor<4x7x8xf32>, %q: tensor<4x7x8xf32>) -> (tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>) {
  %o, %l = aten.scaled_dot_product_flash_attention %q, %q, %q causal : (tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>) -> (tensor<4x7x8xf32>, tensor<4x7xf32>)
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %q, %q, %o, %l causal : (tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7xf32>) -> (tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>)
  return %d#0, %d#1, %d#2 : tensor<4x7x8xf32>, tensor<4x7x8xf32>, tensor<4x7x8xf32>
}

// -----

// Where the first query is among the keys is a number for the kernel.
// CHECK-LABEL: func.func @causal(
// CHECK: %[[FIRST:.*]] = dist.extent
// CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} -> %{{.*}} causal first %[[FIRST]] scale
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} -> %{{.*}} causal first %[[THREE]] scale
#mesh = #dist.mesh<["r" = 4]>
func.func @causal(%q: tensor<1x2x7x8xf32>, %k: tensor<1x2x28x8xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) {
  %i = dist.extent #dist.extents<table [0, 7, 14, 21] over #mesh>
  %0 = aten.scaled_dot_product_attention %q, %k, %k causal first %i : (tensor<1x2x7x8xf32>, tensor<1x2x28x8xf32>, tensor<1x2x28x8xf32>, index) -> tensor<1x2x7x8xf32>
  %1 = aten.scaled_dot_product_attention %q, %k, %k causal first 3 : (tensor<1x2x7x8xf32>, tensor<1x2x28x8xf32>, tensor<1x2x28x8xf32>) -> tensor<1x2x7x8xf32>
  return %0, %1 : tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>
}

// -----

func.func @dropout(%q: tensor<2x7x8xf32>) -> tensor<2x7x8xf32> {
  // expected-error @+1 {{has dropout, which inference does not: export the model in eval mode}}
  %0 = aten.scaled_dot_product_attention %q, %q, %q {dropout_p = 0.1 : f64} : (tensor<2x7x8xf32>, tensor<2x7x8xf32>, tensor<2x7x8xf32>) -> tensor<2x7x8xf32>
  return %0 : tensor<2x7x8xf32>
}
