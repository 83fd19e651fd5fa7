// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions --dist-localize --mlir-print-debuginfo %s | FileCheck %s

// A collective knows the module that made its tensor and the one that uses it.

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

// CHECK: dist.all_reduce sum {{.*}} loc(#[[LOC:.*]])
// CHECK-DAG: #[[LOC]] = loc(fused[#[[PRODUCER:.*]], #[[CONSUMER:.*]]])
// CHECK-DAG: #[[PRODUCER]] = loc(fused<"layers.0.mlp.down">[
// CHECK-DAG: #[[CONSUMER]] = loc(fused<"layers.1.norm">[
func.func @forward(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R> {
  %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #P> loc(#down)
  %r = dist.redistribute %y : tensor<8x32xf32, #P> to tensor<8x32xf32, #R> loc(#down)
  %z = aten.relu %r : (tensor<8x32xf32, #R>) -> tensor<8x32xf32, #R> loc(#norm)
  return %z : tensor<8x32xf32, #R>
}
#down = loc(fused<"layers.0.mlp.down">["linear"("model.py":10:0)])
#norm = loc(fused<"layers.1.norm">["relu"("model.py":20:0)])
