// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --shardc-place="mesh=dp=2 place=input:*=dp:S(0) train=loss=loss,zero=3,precision=bf16" | FileCheck %s

// A weight that is stored in shards is cast before it is gathered, in both entries, and the gradient is widened before it is summed.
// CHECK-DAG: #[[S:.*]] = #dist.layout<#mesh, [S(0)]>
// CHECK-DAG: #[[R:.*]] = #dist.layout<#mesh, [R]>
// CHECK-COUNT-2: dist.redistribute %{{.*}} : tensor<2x4xbf16, #[[S]]> to tensor<2x4xbf16, #[[R]]>
// CHECK: %[[G:.*]] = aten.to_copy %{{.*}} to f32 : (tensor<2x4xbf16, #[[P:.*]]>) -> tensor<2x4xf32, #[[P]]>
// CHECK: dist.redistribute backward %[[G]] : tensor<2x4xf32, #[[P]]> to tensor<2x4xf32, #[[S]]>
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<2x4xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %y = aten.linear %x, %w : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
  %l = aten.sum %y : (tensor<8x2xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
