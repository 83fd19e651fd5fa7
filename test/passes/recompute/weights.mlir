// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gathered weights: kept, or gathered again.
// RUN: shard-opt --dist-recompute %s | FileCheck --check-prefix=KEEP %s
// RUN: shard-opt --dist-recompute="reshard-after-forward=true" %s | FileCheck --check-prefix=AGAIN %s
// RUN: shard-opt --dist-recompute="memory-limit=1KiB" %s | FileCheck --check-prefix=LIMIT %s
// RUN: shard-opt --dist-recompute="memory-limit=1KiB reshard-after-forward=false" %s | FileCheck --check-prefix=KEEP %s
// RUN: shard-opt --dist-recompute="modules=layer" %s | FileCheck --check-prefix=KEEP %s
// The plan's choice, and that the option comes before it.
// RUN: sed 's/module attributes {/module attributes {dist.reshard_after_forward = true, /' %s > %t.mlir
// RUN: shard-opt --dist-recompute %t.mlir | FileCheck --check-prefix=AGAIN %s
// RUN: shard-opt --dist-recompute="reshard-after-forward=false" %t.mlir | FileCheck --check-prefix=KEEP %s
// RUN: shard-opt --dist-recompute="reshard-after-forward=true" --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=COUNT %s
// COUNT-DAG: 1 gathers - Weights that the backward gathers again

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>

// Only the gather of the parameter is one of a weight. It may be started as early as there is room: nothing holds it back.
// KEEP-LABEL: func.func @gradients
// KEEP-COUNT-1: dist.all_gather {{.*}} (tensor<16x64xbf16>)
// KEEP-NOT: (tensor<16x64xbf16>)
// AGAIN-LABEL: func.func @gradients
// AGAIN: %[[C:.*]] = aten.to_copy %arg1
// AGAIN: %[[W:.*]] = dist.all_gather over #{{.*}} %[[C]] dim 0
// AGAIN: aten.transpose %[[W]] [0, 1]
// AGAIN: %[[B:.*]] = aten.matmul %{{.*}} : (tensor<64x64xbf16>, tensor<64x64xbf16>)
// AGAIN-NOT: dist.after
// AGAIN: %[[W2:.*]] = dist.all_gather over #{{.*}} %[[C]] dim 0
// AGAIN: %[[T2:.*]] = aten.transpose %[[W2]] [0, 1]
// AGAIN-NOT: dist.all_gather
// AGAIN: aten.matmul %{{.*}}, %[[T2]]
// LIMIT-LABEL: func.func @gradients
// LIMIT-COUNT-2: dist.all_gather {{.*}} (tensor<16x64xbf16>)
module attributes {dist.mesh = #mesh} {
  func.func @gradients(%x: tensor<64x64xbf16> {dist.kind = "input", dist.name = "x", dist.layout = #R, dist.global_type = tensor<64x64xbf16>},
                       %w: tensor<16x64xf32> {dist.kind = "parameter", dist.name = "w", dist.layout = #S, dist.global_type = tensor<64x64xf32>},
                       %s: tensor<24x64xbf16> {dist.kind = "input", dist.name = "s", dist.layout = #S, dist.global_type = tensor<96x64xbf16>})
      -> (tensor<64x64xbf16> {dist.kind = "output", dist.name = "y"}) {
    %c = aten.to_copy %w to bf16 : (tensor<16x64xf32>) -> tensor<16x64xbf16> loc(#layer)
    %g = dist.all_gather over #dp %c dim 0 : (tensor<16x64xbf16>) -> tensor<64x64xbf16> loc(#layer)
    %t = aten.transpose %g [0, 1] : (tensor<64x64xbf16>) -> tensor<64x64xbf16> loc(#layer)
    %h = aten.matmul %x, %t : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16> loc(#layer)
    %a = dist.all_gather over #dp %s dim 0 : (tensor<24x64xbf16>) -> tensor<96x64xbf16>
    %u = aten.linear %h, %a : (tensor<64x64xbf16>, tensor<96x64xbf16>) -> tensor<64x96xbf16>
    %e = aten.matmul %h, %h : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %b = aten.matmul %e, %e : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("backward of matmul")
    %f = aten.matmul %b, %b : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("backward of matmul")
    %d = aten.matmul %f, %t : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("backward of matmul")
    %r = aten.matmul %d, %d : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("backward of matmul")
    return %r : tensor<64x64xbf16>
  }
}
#layer = loc(fused<"layer">["layer"("m.py":1:0)])
