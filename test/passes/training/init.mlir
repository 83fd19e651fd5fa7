// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-init-parameters="train={init: [{parameters: a, distribution: truncated_normal, std: 0.5}, {parameters: tied, distribution: xavier_uniform}, {parameters: '*.mean', distribution: constant, value: 3}, {parameters: k, distribution: keep}, {parameters: '*', distribution: ones}]}" --mlir-print-local-scope | FileCheck %s
// RUN: shard-opt %s --aten-init-parameters="train={init: [{parameters: '*', distribution: zeros}]}" --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=CONSTANT
// RUN: shard-opt %s --aten-init-parameters="train={zero: 1}" | FileCheck %s --check-prefix=NONE

// Values are made in the layout of each parameter. Offsets count 4 numbers at least, also of what is constant or kept: a has 15,
// bn.mean 3, k 6, so that b begins at 16 + 4 + 8.
// CHECK: dist.training = {init = "init", step = "train_step"}
// CHECK-LABEL: func.func @init
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<3x5xbf16, {{[^{]*}}[S(0)]>> {dist.kind = "parameter", dist.name = "a"}
// CHECK-SAME: dist.name = "bn.mean"
// CHECK-NOT: dist.name = "k"
// CHECK-SAME: dist.name = ["b", "tied"]
// CHECK-SAME: dist.name = "train.step"
// CHECK-SAME: dist.name = "gradient.b"
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<i64, {{[^{]*}}[R]>> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "random.seed"}
// CHECK-SAME: %[[OFFSET:[a-z0-9]+]]: tensor<i64, {{[^{]*}}[R]>> {dist.initial = 0.000000e+00 : f64, dist.kind = "state", dist.name = "random.offset"}
// CHECK-SAME: -> (tensor<3x5xbf16, {{[^{]*}}[S(0)]>> {dist.kind = "parameter_mutation", dist.name = "a"}
// CHECK-SAME: {dist.kind = "buffer_mutation", dist.name = "bn.mean"}
// CHECK-SAME: {dist.kind = "parameter_mutation", dist.name = ["b", "tied"]}
// CHECK-SAME: {dist.kind = "state_mutation", dist.name = "train.step"}
// CHECK-SAME: {dist.kind = "state_mutation", dist.name = "gradient.b"}
// CHECK-SAME: {dist.kind = "state_mutation", dist.name = "random.offset"}
// CHECK: %[[U:.*]] = aten.random "uniform" [3, 5] f32 seed(%[[SEED]]) offset(%{{.*}}) : {{.*}} -> tensor<3x5xf32, {{[^{]*}}[S(0)]>>
// The probability of lying between -2 and 2 is erf(4 / sqrt(2)).
// CHECK: dense<1.99987328>
// CHECK: aten.erfinv {{.*}} -> tensor<3x5xf32, {{[^{]*}}[S(0)]>>
// CHECK: dense<0.707106769>
// CHECK: aten.clamp
// CHECK: aten.to_copy {{.*}} to bf16
// CHECK: aten.constant dense<3> : tensor<i64>
// CHECK: aten.expand {{.*}} -> tensor<3xi64, {{[^{]*}}[R]>>
// CHECK: aten.constant dense<28> : tensor<i64>
// CHECK: aten.random "uniform" [4, 2] f64 {{.*}} -> tensor<4x2xf64, {{[^{]*}}[S(1)]>>
// sqrt(6 / (4 + 2)), and twice that.
// CHECK: dense<{{2.000000e\+00|1.99999.*}}> : tensor<f64>
// CHECK: dense<{{-1.000000e\+00|-0.99999.*}}> : tensor<f64>
// CHECK: dist.redistribute {{.*}} to tensor<4x2xf64, {{[^{]*}}[P(sum)]>>
// CHECK: aten.constant dense<36> : tensor<i64>

// CONSTANT: aten-init-parameters
// CONSTANT-DAG: (S) 4 constant
// CONSTANT-DAG: (S) 2 states
// CONSTANT: func.func @init
// CONSTANT-NOT: random.seed
// NONE-NOT: @init

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>
module attributes {dist.mesh = #mesh, dist.training = {step = "train_step"}} {
  func.func @train_step(%x: tensor<8xf32, #R> {dist.kind = "input", dist.name = "x"},
                        %a: tensor<3x5xbf16, #S0> {dist.kind = "parameter", dist.name = "a"},
                        %mean: tensor<3xi64, #R> {dist.kind = "buffer", dist.name = "bn.mean"},
                        %k: tensor<2x3xf32, #R> {dist.kind = "parameter", dist.name = "k"},
                        %b: tensor<4x2xf64, #S1> {dist.kind = "parameter", dist.name = ["b", "tied"]},
                        %mask: tensor<8xf32, #R> {dist.kind = "constant", dist.name = "mask"},
                        %step: tensor<i64, #R> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "train.step"},
                        %g: tensor<4x2xf64, #P> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.b", dist.unsaved}) {
    return
  }
}
