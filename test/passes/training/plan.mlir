// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What flags say of the precision is what the module says, and reads back as the same.
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2 train=loss=loss,precision=bf16" | FileCheck %s --check-prefix=SHORT
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2 train=loss=loss,precision=f16,precision.loss_scale=off,precision.masters=none" | FileCheck %s --check-prefix=OFF
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2 train=loss=loss,precision.compute=f16,precision.loss_scale.init_scale=8,precision.loss_scale.growth_interval=3,precision.reduce=compute" | FileCheck %s --check-prefix=NUMBERS
// RUN: shard-opt %s --dist-apply-plan="mesh=dp=2 train=loss=loss,precision.loss_scale=0.5" | FileCheck %s --check-prefix=FIXED
// RUN: not shard-opt %s --dist-apply-plan="mesh=dp=2 train=loss=loss,precision.loss_scale.growth_facto=8" 2>&1 | FileCheck %s --check-prefix=WRONG

// SHORT: precision: {masters: \22f32\22, compute: \22bf16\22}}
// OFF: precision: {masters: \22none\22, compute: \22f16\22, loss_scale: off}}
// NUMBERS: precision: {masters: \22f32\22, compute: \22f16\22, reduce: \22compute\22, loss_scale: {init_scale: 8, growth_interval: 3}}}
// FIXED: precision: {masters: \22f32\22, loss_scale: 0.5}}
// WRONG: the loss scale has no key 'growth_facto'; did you mean growth_factor?
func.func @forward(%w: tensor<4xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %y = aten.sum %w : (tensor<4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
