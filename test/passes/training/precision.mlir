// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-train-step="train={loss: loss, optimizer: {name: sgd, momentum: 0.9}, zero: 1, precision: bf16}" | FileCheck %s
// RUN: shard-opt %s --aten-train-step="train={loss: loss, precision: {compute: bf16, reduce: compute}}" | FileCheck %s --check-prefix=REDUCE
// RUN: shard-opt %s --aten-train-step="train={loss: loss, precision: {masters: none}}" | FileCheck %s --check-prefix=NONE
// RUN: shard-opt %s --aten-train-step="train={loss: loss, precision: {masters: f32, loss_scale: {init_scale: 8, growth_interval: 3}}}" | FileCheck %s --check-prefix=SCALE
// RUN: shard-opt %s --aten-train-step="train={loss: loss, micro_batches: 2, precision: {masters: f32, loss_scale: 128}}" | FileCheck %s --check-prefix=FIXED

// The optimizer's state and the master are f32, and the parameter is the master rounded. Gradients are f32 before they are summed.
// CHECK-DAG: #[[S:.*]] = #dist.layout<#mesh, [S(0)]>
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2x4xbf16, #{{[A-Za-z]*}}> {dist.kind = "parameter", dist.name = "w"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<2x4xf32, #[[S]]> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "master.w"}
// CHECK-SAME: tensor<2x4xf32, #[[S]]> {{.*}} dist.name = "optimizer.momentum_buffer.w"}
// CHECK: %[[G:.*]] = aten.tensordot {{.*}} -> tensor<2x4xbf16>
// CHECK: %[[GW:.*]] = aten.to_copy %[[G]] to f32 {dist.widen} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK: dist.redistribute %[[GW]] : tensor<2x4xf32> to tensor<2x4xf32, #[[S]]>
// CHECK: %[[P:.*]] = dist.redistribute %[[W]] : {{.*}} to tensor<2x4xbf16, #[[S]]>
// CHECK: %[[R:.*]] = aten.to_copy %[[M]] to bf16
// CHECK: %[[IS:.*]] = aten.eq %[[R]], %[[P]]
// CHECK: %[[PW:.*]] = aten.to_copy %[[P]] to f32
// CHECK: %[[OLD:.*]] = aten.where %[[IS]], %[[M]], %[[PW]]
// CHECK: %[[NEW:.*]] = aten.sub %[[OLD]], {{.*}} -> tensor<2x4xf32, #[[S]]>
// CHECK: %[[SHORT:.*]] = aten.to_copy %[[NEW]] to bf16
// CHECK: %[[BACK:.*]] = dist.redistribute %[[SHORT]]
// CHECK: return %{{.*}}, %[[BACK]], %{{.*}}, %{{.*}}, %[[NEW]] :

// REDUCE: %[[G:.*]] = aten.tensordot {{.*}} -> tensor<2x4xbf16>
// REDUCE: %[[SUM:.*]] = dist.redistribute %[[G]] : tensor<2x4xbf16> to tensor<2x4xbf16,
// REDUCE: aten.to_copy %[[SUM]] to f32

// NONE-NOT: master.
// NONE: masters = "none"

// The backward begins at the scale, gradients are divided by it, and its next value follows from whether one is not finite.
// SCALE: loss_scale = "loss_scale"
// SCALE: func.func @train_step
// SCALE-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32, #{{.*}}> {dist.initial = 8.000000e+00 : f64, dist.kind = "state", dist.name = "loss_scale"}
// SCALE-SAME: %[[GOOD:[a-z0-9]+]]: tensor<i32, #{{.*}}> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "loss_scale.growth_tracker"}
// SCALE-SAME: dist.name = "train.runs"
// SCALE: aten.to_copy %[[SCALE]] to bf16
// SCALE: %[[BAD:.*]] = aten.gt
// SCALE: %[[NEXT:.*]] = aten.add %[[GOOD]]
// SCALE: aten.constant dense<3>
// SCALE: aten.eq %[[NEXT]]
// SCALE: aten.reciprocal

// One that stays is no state; the micro-batches share it.
// FIXED-NOT: "loss_scale"
// FIXED-NOT: skipped
// FIXED: %[[A:.*]] = aten.constant dense<1.280000e+02>
// FIXED: %[[B:.*]] = aten.constant dense<5.000000e-01>
// FIXED: aten.mul %[[A]], %[[B]]
// FIXED: aten.constant dense<7.812500e-03>

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
#P = #dist.layout<#mesh, [P(sum)]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<8x4xbf16, #S> {dist.kind = "input", dist.name = "x"},
                     %w: tensor<2x4xbf16, #R> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<bf16, #R> {dist.kind = "output", dist.name = "loss"}) {
    %y = aten.linear %x, %w : (tensor<8x4xbf16, #S>, tensor<2x4xbf16, #R>) -> tensor<8x2xbf16, #S>
    %l = aten.sum %y : (tensor<8x2xbf16, #S>) -> tensor<bf16, #P>
    %r = dist.redistribute %l : tensor<bf16, #P> to tensor<bf16, #R>
    return %r : tensor<bf16, #R>
  }
}
