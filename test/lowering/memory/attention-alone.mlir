// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers | FileCheck %s
//
// The pass alone, with no other that would have loaded the dialects of the attention kernel.

// CHECK-LABEL: func.func @attention(
// CHECK: exec.launch @[[K:[a-z_0-9]+]](
// CHECK: func.func private @[[K]](
// CHECK-SAME: exec.kernel
// CHECK: scf.for
// CHECK: vector.
func.func @attention(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x16x8xf32>, %v: tensor<2x4x16x8xf32>)
    -> tensor<2x4x16x8xf32> {
  %0 = aten.scaled_dot_product_attention %q, %k, %v causal scale 0.5
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  return %0 : tensor<2x4x16x8xf32>
}
