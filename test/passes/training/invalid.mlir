// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt %s --aten-train-step 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not shard-opt %s --aten-train-step="train={loss: los, optimizer: {name: sgdm, beta: 1}, zero: 4, micro_batches: 0, precision: {comput: bf16, loss_scale: high}}" 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: not shard-opt %s --aten-train-step="train={optimizer: {name: adam, momentum: 0.9, betas: [1, 0.9], weight_decay: -1}, clip_norm: 0, non_finite: no, accumulation: max, zero_axes: dp}" 2>&1 | FileCheck %s --check-prefix=VALUES
// RUN: not shard-opt %s --aten-train-step="train={loss: loss, frozen: w}" 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: not shard-opt %s --aten-train-step="train={loss: loss, frozen: v, zero: 1, zero_axes: tp}" 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: not shard-opt %s --aten-train-step="train={loss: loss, clip_norm: 1} function=taken" 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not shard-opt %s --aten-train-step="train={loss: loss} function=open" 2>&1 | FileCheck %s --check-prefix=OPEN

// RUN: not shard-opt %s --aten-train-step="train={precision: {compute: f32, masters: bf16, reduce: f16, loss_scale: {init_scale: 0, growth_factor: 1, backoff_factor: 1, growth_interval: 0}}}" 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not shard-opt %s --aten-train-step="train={precision: {compute: f16, masters: none}}" 2>&1 | FileCheck %s --check-prefix=MASTERS

// NOTHING: error: nothing says what a training step does: the plan has no section 'train'
// KEYS-DAG: error: {{.*}}the optimizer has no key 'beta'; did you mean betas?
// KEYS-DAG: error: {{.*}}the precision has no key 'comput'; did you mean compute?
// KEYS-DAG: error: {{.*}}expected off, dynamic, a number or a mapping here, not 'high'
// KEYS-DAG: error: {{.*}}optimizer is one of sgd, adam, adamw, not 'sgdm'
// KEYS-DAG: error: {{.*}}zero is 0, 1, 2 or 3, not 4
// KEYS-DAG: error: {{.*}}micro_batches is at least 1, not 0
// VALUES-DAG: error: {{.*}}optimizer.momentum is a number of sgd, and the optimizer is adam
// VALUES-DAG: error: {{.*}}optimizer.betas are from 0 to below 1, not 1
// VALUES-DAG: error: {{.*}}optimizer.weight_decay must not be negative, not -1
// VALUES-DAG: error: {{.*}}clip_norm must be positive, not 0
// VALUES-DAG: error: {{.*}}non_finite is one of continue, skip, stop, not 'no'
// VALUES-DAG: error: {{.*}}accumulation is one of mean, sum, not 'max'
// VALUES-DAG: error: {{.*}}zero_axes says over which axes zero shards, but zero is 0
// PRECISION-DAG: error: {{.*}}precision.compute is one of bf16, f16, not 'f32'
// PRECISION-DAG: error: {{.*}}precision.masters is one of f32, none, not 'bf16'
// PRECISION-DAG: error: {{.*}}precision.reduce is one of f32, compute, not 'f16'
// PRECISION-DAG: error: {{.*}}precision.loss_scale.init_scale must be positive, not 0
// PRECISION-DAG: error: {{.*}}precision.loss_scale.growth_factor is above 1, not 1
// PRECISION-DAG: error: {{.*}}precision.loss_scale.backoff_factor is between 0 and 1, not 1
// PRECISION-DAG: error: {{.*}}precision.loss_scale.growth_interval is at least 1 and below 2^31, not 0
// MASTERS: error: {{.*}}precision.masters is none, but gradients of a loss that is scaled are divided by the scale in f32
// FROZEN: error: train: all parameters are frozen
// NAMES-DAG: error: {{.*}}'v'
// NAMES-DAG: error: {{.*}}tp
// TAKEN: error: the training step of 'taken' has an output called 'grad_norm', but the model has one of that name
// OPEN: error: function 'open' is not placed: run dist-place before

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
#P = #dist.layout<#mesh, [P(sum)]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<8x4xf32, #S> {dist.kind = "input", dist.name = "x"},
                     %w: tensor<2x4xf32, #R> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
    %y = aten.linear %x, %w : (tensor<8x4xf32, #S>, tensor<2x4xf32, #R>) -> tensor<8x2xf32, #S>
    %l = aten.sum %y : (tensor<8x2xf32, #S>) -> tensor<f32, #P>
    %r = dist.redistribute %l : tensor<f32, #P> to tensor<f32, #R>
    return %r : tensor<f32, #R>
  }
  func.func @taken(%w: tensor<2x4xf32, #R> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}, tensor<f32, #R> {dist.kind = "output", dist.name = "grad_norm"}) {
    %l = aten.sum %w : (tensor<2x4xf32, #R>) -> tensor<f32, #R>
    return %l, %l : tensor<f32, #R>, tensor<f32, #R>
  }
  func.func @open(%w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
    %l = aten.sum %w : (tensor<2x4xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
