// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-train-step="train={loss: loss, optimizer: {name: sgd, momentum: 0.9}, zero: 1, clip_norm: 1, non_finite: skip}" | FileCheck %s
// RUN: shard-opt %s --aten-train-step="train={loss: loss, optimizer: sgd, micro_batches: 2}" | FileCheck %s --check-prefix=MICRO

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
#P = #dist.layout<#mesh, [P(sum)]>

// The state is sharded over dp; the gradient goes there at once, and the new parameter goes back.
// CHECK-DAG: #[[R:.*]] = #dist.layout<#mesh, [R]>
// CHECK-DAG: #[[S:.*]] = #dist.layout<#mesh, [S(0)]>
// CHECK: func.func @forward
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2x4xf32, #[[R]]> {dist.kind = "parameter", dist.name = "w"}
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f64, #[[R]]> {dist.kind = "input", dist.name = "learning_rate"}
// CHECK-SAME: %[[STEP:[a-z0-9]+]]: tensor<i64, #[[R]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "train.step"}
// CHECK-SAME: tensor<i64, #[[R]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "train.runs"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<2x4xf32, #[[S]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "optimizer.momentum_buffer.w"}
// CHECK-SAME: -> (tensor<f32, #[[R]]> {dist.kind = "output", dist.name = "loss"},
// CHECK-SAME: tensor<f32, #[[R]]> {dist.kind = "output", dist.name = "grad_norm"},
// CHECK-SAME: tensor<i1, #[[R]]> {dist.kind = "output", dist.name = "skipped"},
// CHECK-SAME: tensor<2x4xf32, #[[R]]> {dist.kind = "parameter_mutation", dist.name = "w"},
// CHECK-SAME: tensor<i64, #[[R]]> {dist.kind = "state_mutation", dist.name = "train.step"},
// CHECK-SAME: tensor<i64, #[[R]]> {dist.kind = "state_mutation", dist.name = "train.runs"},
// CHECK-SAME: tensor<2x4xf32, #[[S]]> {dist.kind = "state_mutation", dist.name = "optimizer.momentum_buffer.w"})
// CHECK: %[[G:.*]] = aten.tensordot
// CHECK: dist.redistribute %[[G]] : tensor<2x4xf32> to tensor<2x4xf32, #[[S]]>
// CHECK: dist.redistribute %[[W]] : tensor<2x4xf32, #[[R]]> to tensor<2x4xf32, #[[S]]>

// Sums of micro-batches are kept as each rank has them.
// MICRO-DAG: #[[P:.*]] = #dist.layout<#mesh, [P(sum)]>
// MICRO-LABEL: func.func @train_step
// MICRO-SAME: tensor<2x4xf32, #[[P]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved}
// MICRO-LABEL: func.func @accumulate
// MICRO-NOT: learning_rate
// MICRO-SAME: -> (tensor<f32, #{{.*}}> {dist.kind = "output", dist.name = "loss"}, tensor<2x4xf32, #[[P]]> {dist.kind = "state_mutation", dist.name = "gradient.w"})
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<8x4xf32, #S> {dist.kind = "input", dist.name = "x"},
                     %w: tensor<2x4xf32, #R> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<f32, #R> {dist.kind = "output", dist.name = "loss"}) {
    %y = aten.linear %x, %w : (tensor<8x4xf32, #S>, tensor<2x4xf32, #R>) -> tensor<8x2xf32, #S>
    %l = aten.sum %y : (tensor<8x2xf32, #S>) -> tensor<f32, #P>
    %r = dist.redistribute %l : tensor<f32, #P> to tensor<f32, #R>
    return %r : tensor<f32, #R>
  }
}
