// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers | FileCheck %s
//
// Views of a dense 4x6 tensor (strides 6, 1) as offsets and strides; each is copied once, into the output.

// Rows 1 and 3, columns 3 to 5: the first element is 1 * 6 + 3, rows are 2 * 6 apart.
// CHECK-LABEL: func.func @slice(
// CHECK: %[[V:.*]] = memref.reinterpret_cast %arg0 to offset: [9], sizes: [2, 3], strides: [12, 1]
// CHECK: exec.launch @copy{{.*}}(%[[V]], %arg1)
// CHECK-NEXT: return
func.func @slice(%x: tensor<4x6xf32>) -> tensor<2x3xf32> {
  %0 = aten.slice %x dim 0 [1 : 4 : 2] : (tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = aten.slice %0 dim 1 [3 : 6 : 1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// The last row begins at 3 * 6.
// CHECK-LABEL: func.func @select(
// CHECK: memref.reinterpret_cast %arg0 to offset: [18], sizes: [6], strides: [1]
// CHECK: exec.launch @copy
// CHECK-NEXT: return
func.func @select(%x: tensor<4x6xf32>) -> tensor<6xf32> {
  %0 = aten.select %x dim 0 at -1 : (tensor<4x6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: func.func @split(
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 2], strides: [6, 1]
// CHECK: memref.reinterpret_cast %arg0 to offset: [2], sizes: [4, 4], strides: [6, 1]
func.func @split(%x: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>) {
  %0, %1 = aten.split_with_sizes %x [2, 4] dim 1 : (tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>)
  return %0, %1 : tensor<4x2xf32>, tensor<4x4xf32>
}

// Repetition is a stride of 0.
// CHECK-LABEL: func.func @expand(
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [6, 4, 3], strides: [1, 6, 0]
func.func @expand(%x: tensor<4x6xf32>) -> tensor<6x4x3xf32> {
  %0 = aten.permute %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = aten.unsqueeze %0 dim 2 : (tensor<6x4xf32>) -> tensor<6x4x1xf32>
  %2 = aten.expand %1 [6, 4, 3] : (tensor<6x4x1xf32>) -> tensor<6x4x3xf32>
  return %2 : tensor<6x4x3xf32>
}

// Columns 0 to 3 of each row as two pairs: strides 6, 2, 1 say it, without a copy.
// CHECK-LABEL: func.func @reshape(
// CHECK-NOT: exec.alloc
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 2, 2], strides: [6, 2, 1]
// CHECK: exec.launch @copy
// CHECK-NEXT: return
func.func @reshape(%x: tensor<4x6xf32>) -> tensor<4x2x2xf32> {
  %0 = aten.slice %x dim 1 [0 : 4 : 1] : (tensor<4x6xf32>) -> tensor<4x4xf32>
  %1 = aten.view %0 [4, 2, 2] : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  return %1 : tensor<4x2x2xf32>
}

// No strides say the columns of a matrix one after the other: a copy in that order first.
// CHECK-LABEL: func.func @flat_columns(
// CHECK: %[[DENSE:.*]] = exec.alloc : memref<6x4xf32>
// CHECK: %[[T:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [6, 4], strides: [1, 6]
// CHECK: exec.launch @copy{{.*}}(%[[T]], %[[DENSE]])
// CHECK: memref.reinterpret_cast %[[DENSE]] to offset: [0], sizes: [24], strides: [1]
func.func @flat_columns(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %0 = aten.transpose %x [0, 1] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = aten.view %0 [24] : (tensor<6x4xf32>) -> tensor<24xf32>
  return %1 : tensor<24xf32>
}

// Heads are split off and put back: the kernel writes in the order in which its result is read, and nothing is copied.
// CHECK-LABEL: func.func @order_of_the_reader(
// CHECK: %[[B:.*]] = exec.alloc : memref<4x2x3xf32>
// CHECK: %[[W:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [2, 4, 3], strides: [3, 6, 1]
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[W]])
// CHECK-NOT: exec.launch
// CHECK: %[[A:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [4, 6], strides: [6, 1]
// CHECK: exec.gemm %[[A]] *
func.func @order_of_the_reader(%x: tensor<2x4x3xf32>, %w: tensor<5x6xf32>) -> tensor<4x5xf32> {
  %0 = aten.relu %x : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %1 = aten.transpose %0 [0, 1] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %2 = aten.view %1 [4, 6] : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
  %3 = aten.linear %2, %w : (tensor<4x6xf32>, tensor<5x6xf32>) -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}
