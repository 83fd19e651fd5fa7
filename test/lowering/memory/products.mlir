// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers | FileCheck %s
//
// Matrix products: operands as matrices with one stride of 1.

// The batch and the rows are one dim of 6; the weight, stored 5x8, is read transposed; the result is the output.
// CHECK-LABEL: func.func @linear(
// CHECK-DAG: %[[A:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [6, 8], strides: [8, 1]
// CHECK-DAG: %[[B:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [8, 5], strides: [1, 8]
// CHECK-DAG: %[[C:.*]] = memref.reinterpret_cast %arg3 to offset: [0], sizes: [6, 5], strides: [5, 1]
// CHECK: exec.gemm %[[A]] * %[[B]] + %arg2 -> %[[C]] name "linear"
// CHECK-NEXT: return
func.func @linear(%x: tensor<2x3x8xf32>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %0 = aten.linear %x, %w, %b : (tensor<2x3x8xf32>, tensor<5x8xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// A row that is added to all rows is a bias; a matrix is what the result starts from; beta = 0 does not read it.
// CHECK-LABEL: func.func @addmm(
// CHECK: exec.gemm %arg2 * %arg3 + %arg0 -> %arg4 name "addmm" :
// CHECK: exec.launch @copy{{.*}}(%arg1, %arg5)
// CHECK-NEXT: exec.gemm %arg2 * %arg3 -> %arg5 name "addmm" {alpha = 2.000000e+00 : f64, beta = 5.000000e-01 : f64} :
// CHECK-NEXT: exec.gemm %arg2 * %arg3 -> %arg6 name "addmm" :
func.func @addmm(%s: tensor<5xf32>, %m: tensor<3x5xf32>, %x: tensor<3x8xf32>, %w: tensor<8x5xf32>)
    -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %0 = aten.addmm %s, %x, %w : (tensor<5xf32>, tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %1 = aten.addmm %m, %x, %w {alpha = 2.0 : f64, beta = 0.5 : f64}
      : (tensor<3x5xf32>, tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %2 = aten.addmm %m, %x, %w {beta = 0.0 : f64}
      : (tensor<3x5xf32>, tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %0, %1, %2 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
}

// CHECK-LABEL: func.func @transposed_batches(
// CHECK: %[[B:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [2, 8, 5], strides: [40, 1, 8]
// CHECK: exec.gemm %arg0 * %[[B]] -> %arg2 name "bmm"
func.func @transposed_batches(%x: tensor<2x3x8xf32>, %y: tensor<2x5x8xf32>) -> tensor<2x3x5xf32> {
  %0 = aten.transpose %y [1, 2] : (tensor<2x5x8xf32>) -> tensor<2x8x5xf32>
  %1 = aten.bmm %x, %0 : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// Rows of all batches against one matrix are one product; a vector is a matrix of one column.
// CHECK-LABEL: func.func @matmul(
// CHECK: exec.gemm {{.*}} : memref<24x8xf32, strided<[8, 1]>> * memref<8x5xf32> -> memref<24x5xf32, strided<[5, 1]>>
// CHECK: exec.gemm {{.*}} : memref<24x8xf32, strided<[8, 1]>> * memref<8x1xf32, strided<[1, 1]>> -> memref<24x1xf32, strided<[1, 1]>>
func.func @matmul(%a: tensor<2x4x3x8xf32>, %c: tensor<8x5xf32>, %v: tensor<8xf32>)
    -> (tensor<2x4x3x5xf32>, tensor<2x4x3xf32>) {
  %0 = aten.matmul %a, %c : (tensor<2x4x3x8xf32>, tensor<8x5xf32>) -> tensor<2x4x3x5xf32>
  %1 = aten.matmul %a, %v : (tensor<2x4x3x8xf32>, tensor<8xf32>) -> tensor<2x4x3xf32>
  return %0, %1 : tensor<2x4x3x5xf32>, tensor<2x4x3xf32>
}

// Every other column: no stride is 1, so the operand is copied.
// CHECK-LABEL: func.func @no_stride_of_one(
// CHECK: %[[DENSE:.*]] = exec.alloc : memref<3x8xf32>
// CHECK: %[[V:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [3, 8], strides: [16, 2]
// CHECK: exec.launch @copy{{.*}}(%[[V]], %[[DENSE]])
// CHECK: exec.gemm %[[DENSE]] * %arg1 -> %arg2
func.func @no_stride_of_one(%x: tensor<3x16xf32>, %w: tensor<8x5xf32>) -> tensor<3x5xf32> {
  %0 = aten.slice %x dim 1 [0 : 16 : 2] : (tensor<3x16xf32>) -> tensor<3x8xf32>
  %1 = aten.mm %0, %w : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}

// A single row of it is a transposed matrix whose columns are 2 apart: no copy.
// CHECK-LABEL: func.func @single_row(
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %arg0 to offset: [16], sizes: [1, 8], strides: [{{1|16}}, 2]
// CHECK-NEXT: exec.gemm %[[ROW]] * %arg1 -> %arg2
func.func @single_row(%x: tensor<3x16xf32>, %w: tensor<8x5xf32>) -> tensor<1x5xf32> {
  %0 = aten.slice %x dim 0 [1 : 2 : 1] : (tensor<3x16xf32>) -> tensor<1x16xf32>
  %1 = aten.slice %0 dim 1 [0 : 16 : 2] : (tensor<1x16xf32>) -> tensor<1x8xf32>
  %2 = aten.mm %1, %w : (tensor<1x8xf32>, tensor<8x5xf32>) -> tensor<1x5xf32>
  return %2 : tensor<1x5xf32>
}

// Nor may rows overlap: a matrix that repeats one row is copied.
// CHECK-LABEL: func.func @repeated_row(
// CHECK: exec.launch @copy
// CHECK: exec.gemm
func.func @repeated_row(%x: tensor<1x8xf32>, %w: tensor<8x5xf32>) -> tensor<3x5xf32> {
  %0 = aten.expand %x [3, 8] : (tensor<1x8xf32>) -> tensor<3x8xf32>
  %1 = aten.mm %0, %w : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}
