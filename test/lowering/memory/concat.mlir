// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers | FileCheck %s
//
// Concatenations: what is computed is computed in its part (rows of the result are 15 apart), the rest is copied there.

// CHECK-LABEL: func.func @parts(
// CHECK-NOT: exec.alloc
// CHECK-DAG: %[[A:.*]] = memref.reinterpret_cast %arg2 to offset: [0], sizes: [4, 6], strides: [15, 1]
// CHECK-DAG: %[[C:.*]] = memref.reinterpret_cast %arg2 to offset: [9], sizes: [4, 6], strides: [15, 1]
// CHECK: exec.launch @relu_tanh_kernel(%arg0, %[[A]], %[[C]])
// CHECK: %[[B:.*]] = memref.reinterpret_cast %arg2 to offset: [6], sizes: [4, 3], strides: [15, 1]
// CHECK: exec.launch @copy{{.*}}(%arg1, %[[B]])
// CHECK-NEXT: return
func.func @parts(%x: tensor<4x6xf32>, %y: tensor<4x3xf32>) -> tensor<4x15xf32> {
  %0 = aten.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = aten.tanh %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = aten.cat %0, %y, %1 dim 1 : (tensor<4x6xf32>, tensor<4x3xf32>, tensor<4x6xf32>) -> tensor<4x15xf32>
  return %2 : tensor<4x15xf32>
}

// A product writes rows that are further apart than its width.
// CHECK-LABEL: func.func @product(
// CHECK: %[[C:.*]] = memref.reinterpret_cast %arg2 to offset: [5], sizes: [4, 7], strides: [12, 1]
// CHECK: exec.gemm %arg0 * %{{.*}} -> %[[C]]
func.func @product(%x: tensor<4x5xf32>, %w: tensor<7x5xf32>) -> tensor<4x12xf32> {
  %0 = aten.linear %x, %w : (tensor<4x5xf32>, tensor<7x5xf32>) -> tensor<4x7xf32>
  %1 = aten.cat %x, %0 dim 1 : (tensor<4x5xf32>, tensor<4x7xf32>) -> tensor<4x12xf32>
  return %1 : tensor<4x12xf32>
}

// A value has one place: its second occurrence, and an output that the concatenation does not have, are copies.
// CHECK-LABEL: func.func @twice(
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[FIRST:.*]]) name
// CHECK: %[[FROM:.*]] = memref.reinterpret_cast
// CHECK: %[[TO:.*]] = memref.reinterpret_cast %arg1 to offset: [3], sizes: [3], strides: [1]
// CHECK: exec.launch @copy{{.*}}(%{{.*}}, %[[TO]])
// CHECK-NEXT: return
func.func @twice(%x: tensor<3xf32>) -> tensor<6xf32> {
  %0 = aten.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = aten.cat %0, %0 dim 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @also_returned(
// CHECK: exec.launch @relu{{.*}}(%arg0, %arg2) name
// CHECK: %[[TO:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [3], strides: [1]
// CHECK: exec.launch @copy{{.*}}(%arg2, %[[TO]])
func.func @also_returned(%x: tensor<3xf32>) -> (tensor<6xf32>, tensor<3xf32>) {
  %0 = aten.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = aten.cat %0, %x dim 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return %1, %0 : tensor<6xf32>, tensor<3xf32>
}

// Element (i, j) of the second operand is at 8 i + 2 j + 1.
// CHECK-LABEL: func.func @stack(
// CHECK: memref.reinterpret_cast %arg2 to offset: [0], sizes: [3, 4], strides: [8, 2]
// CHECK: memref.reinterpret_cast %arg2 to offset: [1], sizes: [3, 4], strides: [8, 2]
func.func @stack(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = aten.stack %x, %y dim 2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4x2xf32>
  return %0 : tensor<3x4x2xf32>
}

// An empty part needs no copy.
// CHECK-LABEL: func.func @empty(
// CHECK: exec.launch @copy{{.*}}(%arg0, %{{.*}})
// CHECK-NOT: exec.launch
// CHECK: return
func.func @empty(%x: tensor<2x3xf32>, %n: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %0 = aten.cat %x, %n dim 0 : (tensor<2x3xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
