// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x6xf32>
func.func @views(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<2x12xf32>, tensor<4x6xf32>) {
  // To the same shape.
  %0 = aten.view %x [4, 6] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // Of a view, however long the chain is.
  // CHECK: %[[V:.*]] = aten.view %[[X]] [2, 12]
  %1 = aten.view %x [24] : (tensor<4x6xf32>) -> tensor<24xf32>
  %2 = aten.view %1 [8, 3] : (tensor<24xf32>) -> tensor<8x3xf32>
  %3 = aten.view %2 [2, 12] : (tensor<8x3xf32>) -> tensor<2x12xf32>
  // There and back.
  %4 = aten.view %1 [4, 6] : (tensor<24xf32>) -> tensor<4x6xf32>
  // CHECK: return %[[X]], %[[V]], %[[X]]
  return %0, %3, %4 : tensor<4x6xf32>, tensor<2x12xf32>, tensor<4x6xf32>
}

// One unknown size follows from the others; of two, or of none of many elements, nothing is known.
// CHECK-LABEL: func.func @symbolic_views(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x6xf32>, %[[Y:[^:]*]]: tensor<?x?xf32>, %[[Z:[^:]*]]: tensor<?x0xf32>
func.func @symbolic_views(%x: tensor<?x6xf32>, %y: tensor<?x?xf32>, %z: tensor<?x0xf32>, %n: index) -> (tensor<?x6xf32>, tensor<?x?xf32>, tensor<?x0xf32>) {
  %0 = aten.view %x [%n, 6] : (tensor<?x6xf32>) -> tensor<?x6xf32>
  // CHECK-DAG: %[[V:.*]] = aten.view %[[Y]]
  %1 = aten.view %y [%n, %n] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK-DAG: %[[W:.*]] = aten.view %[[Z]]
  %2 = aten.view %z [%n, 0] : (tensor<?x0xf32>) -> tensor<?x0xf32>
  // CHECK: return %[[X]], %[[V]], %[[W]]
  return %0, %1, %2 : tensor<?x6xf32>, tensor<?x?xf32>, tensor<?x0xf32>
}

// CHECK-LABEL: func.func @permutations(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4xf32>
func.func @permutations(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<4x3x2xf32>) {
  %0 = aten.permute %x [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = aten.transpose %x [1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = aten.transpose %x [0, 2] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %3 = aten.transpose %2 [2, 0] : (tensor<4x3x2xf32>) -> tensor<2x3x4xf32>
  %4 = aten.permute %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %5 = aten.permute %4 [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  // CHECK: %[[T:.*]] = aten.transpose %[[X]] [0, 2]
  // CHECK: %[[P:.*]] = aten.permute %[[X]] [2, 0, 1]
  // Twice the same rotation is no identity.
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[P]], %[[T]]
  return %0, %1, %3, %5, %4, %2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: func.func @not_inverse(
// CHECK: aten.permute %arg0 [1, 2, 0]
// CHECK: aten.permute %{{.*}} [1, 2, 0]
func.func @not_inverse(%x: tensor<2x2x2xf32>) -> tensor<2x2x2xf32> {
  %0 = aten.permute %x [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %1 = aten.permute %0 [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  return %1 : tensor<2x2x2xf32>
}

// CHECK-LABEL: func.func @slices(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x6xf32>, %[[Y:[^:]*]]: tensor<?xf32>
func.func @slices(%x: tensor<4x6xf32>, %y: tensor<?xf32>, %n: index) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<?xf32>, tensor<4x5xf32>, tensor<4x3xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = aten.slice %x dim 1 [0 : 6 : 1] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = aten.slice %x dim 1 [-9 : 99 : 1] : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = aten.slice %y dim 0 [0 : 9223372036854775807 : 1] : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK-DAG: %[[A:.*]] = aten.slice %[[X]] dim 1 [1 : 6 : 1]
  %3 = aten.slice %x dim 1 [1 : 6 : 1] : (tensor<4x6xf32>) -> tensor<4x5xf32>
  // CHECK-DAG: %[[B:.*]] = aten.slice %[[X]] dim 1 [0 : 6 : 2]
  %4 = aten.slice %x dim 1 [0 : 6 : 2] : (tensor<4x6xf32>) -> tensor<4x3xf32>
  // CHECK-DAG: %[[C:.*]] = aten.slice %[[Y]] dim 0 [0 : 6 : 1]
  %5 = aten.slice %y dim 0 [0 : 6 : 1] : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK-DAG: %[[D:.*]] = aten.slice %[[Y]] dim 0 [0 : %{{.*}} : 1]
  %6 = aten.slice %y dim 0 [0 : %n : 1] : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK: return %[[X]], %[[X]], %[[Y]], %[[A]], %[[B]], %[[C]], %[[D]]
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<?xf32>, tensor<4x5xf32>, tensor<4x3xf32>, tensor<?xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @expand_and_cast(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x6xf32>, %[[Y:[^:]*]]: tensor<?x6xf32>
func.func @expand_and_cast(%x: tensor<1x6xf32>, %y: tensor<?x6xf32>, %n: index) -> (tensor<1x6xf32>, tensor<2x6xf32>, tensor<?x6xf32>, tensor<1x6xf32>, tensor<1x6xf64>) {
  %0 = aten.expand %x [1, 6] : (tensor<1x6xf32>) -> tensor<1x6xf32>
  // CHECK-DAG: %[[A:.*]] = aten.expand %[[X]] [2, 6]
  %1 = aten.expand %x [2, 6] : (tensor<1x6xf32>) -> tensor<2x6xf32>
  // One row may become many.
  // CHECK-DAG: %[[B:.*]] = aten.expand %[[Y]]
  %2 = aten.expand %y [%n, 6] : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %3 = aten.to_copy %x to f32 : (tensor<1x6xf32>) -> tensor<1x6xf32>
  // CHECK-DAG: %[[C:.*]] = aten.to_copy %[[X]] to f64
  %4 = aten.to_copy %x to f64 : (tensor<1x6xf32>) -> tensor<1x6xf64>
  // CHECK: return %[[X]], %[[A]], %[[B]], %[[X]], %[[C]]
  return %0, %1, %2, %3, %4 : tensor<1x6xf32>, tensor<2x6xf32>, tensor<?x6xf32>, tensor<1x6xf32>, tensor<1x6xf64>
}

// A layout is part of the type: nothing is replaced by a value in another, and views stay apart.
// CHECK-LABEL: func.func @encodings(
// CHECK: aten.view %arg0 [24]
// CHECK: aten.view %{{.*}} [4, 6]
// CHECK: aten.to_copy %arg0 to f32
func.func @encodings(%x: tensor<4x6xf32, "a">) -> (tensor<4x6xf32, "a">, tensor<4x6xf32, "b">) {
  %0 = aten.view %x [24] : (tensor<4x6xf32, "a">) -> tensor<24xf32, "c">
  %1 = aten.view %0 [4, 6] : (tensor<24xf32, "c">) -> tensor<4x6xf32, "a">
  %2 = aten.to_copy %x to f32 : (tensor<4x6xf32, "a">) -> tensor<4x6xf32, "b">
  return %1, %2 : tensor<4x6xf32, "a">, tensor<4x6xf32, "b">
}
