// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-refine-types --pass-statistics 2>&1 | FileCheck %s

// Sizes that follow from the operands become static, as far as they do; nothing that is known is lost.
// CHECK-LABEL: func.func @sizes(
// CHECK: aten.matmul {{.*}} -> tensor<?x4xf32>
// CHECK: aten.sum {{.*}} -> tensor<4xf32>
func.func @sizes(%x: tensor<?x3xf32>, %y: tensor<3x4xf32>) -> tensor<?xf32> {
  %0 = aten.matmul %x, %y : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x?xf32>
  %1 = aten.sum %0 dim [0] : (tensor<?x?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
