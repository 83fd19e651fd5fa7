// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The step of a plan with a section train is placed around the forward, which stays as it is; without one nothing changes.
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2 place=input:x=dp:S(0) train=loss=loss,zero=1" --dist-propagate --dist-place --dist-train --mlir-pass-statistics 2>&1 | FileCheck %s
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2" --dist-propagate --dist-place --dist-train --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: dist-train
// CHECK: (S) {{ *}}1 programs
// CHECK-LABEL: func.func @forward
// CHECK-LABEL: func.func @train_step
// CHECK: %[[G:.*]] = aten.tensordot {{.*}} -> tensor<2x4xf32, #Pdp>
// CHECK: dist.redistribute %[[G]] : tensor<2x4xf32, #Pdp> to tensor<2x4xf32, #[[SHARD:.*]]>
// CHECK: dist.redistribute {{.*}} : tensor<2x4xf32, #[[SHARD]]> to tensor<2x4xf32, #R>

// NONE: func.func @forward
// NONE-NOT: train_step
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
  %l = aten.sum %y : (tensor<8x2xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
