// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-decompose-for-kernels --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @group_norm
// CHECK-SAME:    (%[[X:.*]]: tensor<3x6x5x7xbf16>, %[[W:.*]]: tensor<6xbf16>)
// CHECK:         %[[V:.*]] = aten.view %[[X]] [3, 2, 3, 35]
// CHECK:         %[[F:.*]] = aten.to_copy %[[V]] to f32
// CHECK:         %[[N:.*]] = aten.layer_norm %[[F]] [3, 35] {eps = 1.000000e-03 : f64}
// CHECK:         %[[C:.*]] = aten.view %[[W]] [2, 3, 1]
// CHECK:         %[[D:.*]] = aten.to_copy %[[C]] to f32
// CHECK:         %[[M:.*]] = aten.mul %[[N]], %[[D]]
// CHECK:         %[[B:.*]] = aten.to_copy %[[M]] to bf16
// CHECK:         %[[R:.*]] = aten.view %[[B]] [3, 6, 5, 7]
// CHECK:         return %[[R]]
func.func @group_norm(%x: tensor<3x6x5x7xbf16>, %w: tensor<6xbf16>) -> tensor<3x6x5x7xbf16> {
  %0 = aten.group_norm %x groups 2 weight(%w) {eps = 1.0e-3 : f64} : (tensor<3x6x5x7xbf16>, tensor<6xbf16>) -> tensor<3x6x5x7xbf16>
  return %0 : tensor<3x6x5x7xbf16>
}

// -----

// The batch may be of any size.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[B:.*]] = aten.sym_size %{{.*}} dim 0
// CHECK:         aten.view %{{.*}} [%[[B]], 3, 2, 1]
func.func @dynamic(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %0 = aten.group_norm %x groups 3 : (tensor<?x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}

// -----

func.func @unknown_positions(%x: tensor<2x6x?xf32>) -> tensor<2x6x?xf32> {
  // expected-error @+1 {{'aten.group_norm' op of 'tensor<2x6x?xf32>' in 3 groups has no kernel: it needs static sizes after the batch}}
  %0 = aten.group_norm %x groups 3 : (tensor<2x6x?xf32>) -> tensor<2x6x?xf32>
  return %0 : tensor<2x6x?xf32>
}

// -----

// CHECK-LABEL: func.func @cat
// CHECK-SAME:    (%[[X:.*]]: tensor<2xbf16>, %[[Y:.*]]: tensor<3xf32>)
// CHECK:         %[[C:.*]] = aten.to_copy %[[X]] to f32
// CHECK:         aten.cat %[[C]], %[[Y]] dim 0
func.func @cat(%x: tensor<2xbf16>, %y: tensor<3xf32>) -> tensor<5xf32> {
  %0 = aten.cat %x, %y dim 0 : (tensor<2xbf16>, tensor<3xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
