// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --split-input-file --verify-diagnostics | FileCheck %s

// Neighbours share a kernel; what a call of the C library is named never names a kernel.
// CHECK-LABEL: func.func @neighbours
// CHECK-SAME:    (%[[X:.*]]: tensor<8x64xf32>, %[[Y:.*]]: tensor<8x64xf32>)
// CHECK-NEXT:  %[[R:.*]] = call @add_exp_kernel(%[[X]], %[[Y]]) {exec.name = "add+exp"}
// CHECK-NEXT:  return %[[R]]
// CHECK:       func.func private @add_exp_kernel
// CHECK-SAME:    attributes {exec.kernel}
// CHECK:         aten.add
// CHECK:         aten.exp
func.func @neighbours(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = aten.add %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = aten.exp %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// -----

// A scan runs over whole rows, like a norm, and what is computed for each element of them comes along.
// CHECK-LABEL: func.func @scan
// CHECK:         call @mul_cumsum_kernel
func.func @scan(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %0 = aten.mul %x, %x : (tensor<4x9xf32>, tensor<4x9xf32>) -> tensor<4x9xf32>
  %1 = aten.cumsum %0 dim 1 : (tensor<4x9xf32>) -> tensor<4x9xf32>
  return %1 : tensor<4x9xf32>
}
