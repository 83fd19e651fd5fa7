// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Activation checkpointing by module.
// RUN: shard-opt --dist-recompute="modules=layers.*" %s | FileCheck %s
// RUN: shard-opt --dist-recompute="modules={layers.{0,1}}" %s | FileCheck %s
// RUN: shard-opt --dist-recompute="modules=layers.* remarks=true" %s -o /dev/null 2>&1 | FileCheck --check-prefix=REMARK %s
// RUN: shard-opt --dist-recompute="modules=layers.*" --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=COUNT %s
// RUN: shard-opt --dist-recompute %s | FileCheck --check-prefix=NOTHING %s
// What keeps clones apart from the first computation is not merged away, and the pass knows clones that are there.
// RUN: shard-opt --dist-recompute="modules=layers.*" --canonicalize --cse %s | FileCheck %s
// RUN: shard-opt --dist-recompute="modules=layers.*" --dist-schedule-collectives --dist-verify-stage=scheduled %s | FileCheck --check-prefix=SCHEDULED %s

// REMARK: remark: module 'm.layers.0' is computed again in the backward: 3072 bytes are not kept, 7 us more
// REMARK: remark: module 'm.layers.1' is computed again in the backward: 3072 bytes are not kept
// COUNT-DAG: 6 ops - Ops that the backward computes again
// COUNT-DAG: 2 modules -
// NOTHING-LABEL: func.func @gradients
// NOTHING-NOT: dist.after

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#R = #dist.layout<#mesh, [R]>

// The input of each layer and what other layers read of it are kept; what is between is made again, before the first op of the
// backward that reads it, and collectives of a layer are repeated.
// CHECK-LABEL: func.func @gradients
// CHECK: %[[E0:.*]] = aten.exp %arg0
// CHECK: %[[A0:.*]] = dist.all_reduce sum over #{{.*}} %[[E0]]
// CHECK: aten.tanh
// CHECK: %[[Y0:.*]] = aten.add %arg0
// CHECK: %[[E1:.*]] = aten.exp %[[Y0]]
// CHECK: %[[Y1:.*]] = aten.add %[[Y0]]
// The backward of the second layer: its first op reads the product behind the exp.
// CHECK: %[[G:.*]] = aten.matmul %[[Y1]]
// CHECK: %[[X1:.*]] = dist.after %[[Y0]], %[[G]] : tensor<16x16xf32>, tensor<16x16xf32>
// CHECK: %[[E1B:.*]] = aten.exp %[[X1]]
// CHECK: %[[A1B:.*]] = dist.all_reduce sum over #{{.*}} %[[E1B]]
// CHECK: %[[T1B:.*]] = aten.tanh
// CHECK: %[[G1:.*]] = aten.matmul %[[G]], %[[T1B]]
// CHECK: aten.mul %[[G1]], %[[A1B]]
// CHECK: %[[G2:.*]] = aten.matmul
// CHECK: %[[X0:.*]] = dist.after %arg0, %{{.*}} : tensor<16x16xf32>, tensor<16x16xf32>
// CHECK: %[[E0B:.*]] = aten.exp %[[X0]]
// CHECK: %[[A0B:.*]] = dist.all_reduce sum over #{{.*}} %[[E0B]]
// CHECK: aten.tanh

// SCHEDULED: aten.matmul
// SCHEDULED: dist.after
// SCHEDULED: aten.exp
// SCHEDULED: dist.after %arg0
// SCHEDULED: aten.exp
module attributes {dist.mesh = #mesh} {
  func.func @gradients(%x: tensor<16x16xf32> {dist.kind = "input", dist.name = "x", dist.layout = #R, dist.global_type = tensor<16x16xf32>})
      -> (tensor<16x16xf32> {dist.kind = "output", dist.name = "y"}) {
    %e0 = aten.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer0)
    %a0 = dist.all_reduce sum over #dp %e0 : tensor<16x16xf32> loc(#inner0)
    %v0 = aten.transpose %a0 [0, 1] : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer0)
    %t0 = aten.tanh %v0 : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer0)
    %y0 = aten.add %x, %t0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer0)
    %e1 = aten.exp %y0 : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer1)
    %a1 = dist.all_reduce sum over #dp %e1 : tensor<16x16xf32> loc(#layer1)
    %v1 = aten.transpose %a1 [0, 1] : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer1)
    %t1 = aten.tanh %v1 : (tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer1)
    %y1 = aten.add %y0, %t1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#layer1)
    %g = aten.matmul %y1, %y1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %g1 = aten.matmul %g, %t1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %h1 = aten.mul %g1, %a1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %k1 = aten.mul %h1, %y0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %g2 = aten.matmul %k1, %k1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %g3 = aten.mul %g2, %t0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    %h3 = aten.mul %g3, %v0 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc(#back)
    return %h3 : tensor<16x16xf32>
  }
}

#layer0 = loc(fused<"m.layers.0">["layer0"("m.py":1:0)])
#inner0 = loc(fused<"m.layers.0.sum">["inner0"("m.py":2:0)])
#layer1 = loc(fused<"m.layers.1">["layer1"("m.py":1:0)])
#back = loc(fused<"m.layers.1">["backward of tanh"("m.py":1:0)])
