// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward cotangents=y outputs=false wrt=x,[w-x]" %s | FileCheck %s --check-prefix=VJP
// RUN: shard-opt --aten-differentiate="into=forward loss=0 loss=l2 wrt=w" %s | FileCheck %s --check-prefix=SUM
// RUN: shard-opt --aten-differentiate="into=forward loss=l2" %s 2>&1 | FileCheck %s --check-prefix=UNREACHED
// RUN: sed 's/"parameter", dist.name = "w"/"parameter", dist.frozen, dist.name = "w"/' %s | shard-opt --aten-differentiate="into=forward loss=0" | FileCheck %s --check-prefix=FROZEN
// RUN: sed 's/"parameter", dist.name = "w"/"parameter", dist.frozen, dist.name = "w"/' %s | shard-opt --aten-differentiate="into=forward loss=0 wrt=w" | FileCheck %s --check-prefix=NAMED
// RUN: shard-opt --aten-differentiate="into=forward loss=0" --mlir-print-debuginfo %s | FileCheck %s --check-prefix=PLACE

// A given cotangent is an argument; without the outputs only what is written back stays. An argument counts once.
// VJP: func.func @forward(
// VJP-SAME: %arg4: tensor<4xf32> {dist.kind = "input", dist.name = "cotangent_y"}
// VJP-SAME: -> (tensor<4xf32> {dist.kind = "buffer_mutation", dist.name = "b"},
// VJP-SAME: tensor<4xf32> {dist.kind = "gradient", dist.name = "x"}, tensor<4xf32> {dist.kind = "gradient", dist.name = "w"})

// A frozen parameter has no gradient, unless it is named.
// FROZEN: func.func @forward
// FROZEN-NOT: dist.kind = "gradient", dist.name = "w"
// FROZEN: dist.kind = "gradient", dist.name = "v"
// NAMED: dist.kind = "gradient", dist.name = "w"

// Two losses: the gradient of their sum.
// SUM: %[[A:.*]] = aten.sum %{{.*}} : (tensor<4xf32>) -> tensor<f32>
// SUM: %[[ONE:.*]] = aten.constant dense<1.000000e+00> : tensor<f32>
// SUM: %[[OTHER:.*]] = aten.constant dense<1.000000e+00> : tensor<f32>
// SUM-DAG: aten.expand %[[ONE]]
// SUM-DAG: aten.expand %[[OTHER]]
// SUM: %[[G:.*]] = aten.add
// SUM: %[[GW:.*]] = aten.mul %[[G]], %arg0
// SUM: return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[GW]]

// UNREACHED: remark: the loss does not depend on 'v': it has no gradient
// An alias may have been a detach in the model.
// UNREACHED: warning: the gradient passes 'aten.alias' op in m.down (model.py:9), which was a detach if PyTorch's own decompositions were run; export the model with 'shardc export', which keeps detach
// UNREACHED-NOT: dist.kind = "gradient", dist.name = "v"

// PLACE: #[[LOC:loc[0-9]+]] = loc("backward of mul"
// PLACE: loc(fused<"m.up">[#[[LOC]]])
func.func @forward(%x: tensor<4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<4xf32> {dist.kind = "parameter", dist.name = "w"},
                   %v: tensor<4xf32> {dist.kind = "parameter", dist.name = "v"},
                   %b: tensor<4xf32> {dist.kind = "buffer", dist.name = "b"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "l1"}, tensor<f32> {dist.kind = "output", dist.name = "l2"},
        tensor<4xf32> {dist.kind = "output", dist.name = "y"}, tensor<4xf32> {dist.kind = "buffer_mutation", dist.name = "b"}) {
  %y = aten.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(fused<"m.up">["mul"("model.py":7:0)])
  %z = aten.mul %y, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l1 = aten.sum %z : (tensor<4xf32>) -> tensor<f32>
  %a = aten.alias %y : (tensor<4xf32>) -> tensor<4xf32> loc(fused<"m.down">["alias"("model.py":9:0)])
  %l2 = aten.sum %a : (tensor<4xf32>) -> tensor<f32>
  %n = aten.add %b, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %l1, %l2, %y, %n : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
