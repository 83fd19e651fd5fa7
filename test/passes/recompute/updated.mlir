// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-recompute="memory-limit=1KiB" %s | FileCheck %s

// A parameter that the backward updates is read again, behind its gather too: the update comes after all that reads it.
// CHECK-LABEL: func.func @updated
// CHECK-COUNT-3: aten.matmul
// CHECK: dist.after %arg1, %{{.*}} : tensor<32x32xf32>
// CHECK: aten.tanh
// CHECK: return
func.func @updated(%x: tensor<32x32xf32>, %w: tensor<32x32xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<32x32xf32> {dist.kind = "parameter_mutation", dist.name = "w"}) {
  %e = aten.tanh %w : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = aten.matmul %x, %e : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %t = aten.matmul %s, %s : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %g = aten.matmul %t, %t : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of matmul")
  %d = aten.mul %g, %e : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of tanh")
  %new = aten.sub %w, %d : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("backward of tanh")
  return %new : tensor<32x32xf32>
}
