// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whatever it costs, and what every rank computes.
// DEFINE: %{local} = --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse
// RUN: shard-opt %{local} %s -o %t.mlir
// RUN: shard-opt %t.mlir --dist-ring-attention=mode=all | FileCheck %s
// RUN: shard-opt %t.mlir --dist-ring-attention=mode=balanced | FileCheck --check-prefix=BALANCED %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %t.mlir --tolerance 1e-5 -- --dist-ring-attention=mode=all | FileCheck --check-prefix=SAME %s %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %t.mlir --tolerance 1e-5 -- --dist-ring-attention=mode=balanced | FileCheck --check-prefix=SAME %s %}
// SAME: 8 functions, 0 failures
// RUN: shard-opt %t.mlir --dist-ring-attention=mode=balanced --dist-schedule-collectives --dist-verify-schedule --dist-verify-stage=stage=scheduled -o /dev/null
// RUN: shard-opt %t.mlir --dist-ring-attention=mode=balanced --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS-DAG: 7 rings
// STATS-DAG: 3 balanced
// STATS-DAG: 1 unaligned
// STATS-DAG: 1 unknown
// RUN: shard-opt %t.mlir --dist-ring-attention="mode=balanced remarks" -o /dev/null 2>&1 | FileCheck --check-prefix=REMARK %s
// REMARK: remark: keys and values go around a ring of 4 ranks{{$}}
// REMARK: remark: keys and values go around a ring of 4 ranks, which exchange halves of their rows to have equal work
// RUN: shard-opt %t.mlir --dist-ring-attention=mode=off | FileCheck --check-prefix=GATHERED %s
// GATHERED-NOT: dist.permute
// GATHERED-NOT: partial
// RUN: not shard-opt --dist-ring-attention="mode=some" %s 2>&1 | FileCheck --check-prefix=WRONG %s
// WRONG: error: mode: 'some' is neither off, auto, all nor balanced

#mesh = #dist.mesh<["sp" = 4]>
#R = #dist.layout<#mesh, [R]>
#seq = #dist.layout<#mesh, [S(2)]>
#rows = #dist.layout<#mesh, [S(0)]>
#uneven = #dist.layout<#mesh, [S(2, sizes = [3, 0, 4, 1])]>
#P = #dist.layout<#mesh, [P(sum)]>

// A rank has the block of the rank `t` places before it at step t, which is on its way while the one before is computed with.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: dist.all_gather
// CHECK: %[[A:.*]]:2 = dist.permute over #sp pairs {{\[\[0, 1\], \[1, 2\], \[2, 3\], \[3, 0\]\]}} %arg1, %arg2 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
// CHECK-NEXT: %[[O:.*]], %[[L:.*]] = aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg2 partial
// CHECK-NEXT: dist.permute over #sp pairs {{\[\[0, 1\], \[1, 2\], \[2, 3\], \[3, 0\]\]}} %[[A]]#0, %[[A]]#1 :
// CHECK-NEXT: aten.scaled_dot_product_flash_attention %arg0, %[[A]]#0, %[[A]]#1 partial
// CHECK: aten.maximum
// CHECK: dist.permute
// CHECK-NOT: dist.permute
// CHECK: return
func.func @plain(%q: tensor<1x2x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %v: tensor<1x2x8x4xf32, #seq>) -> tensor<1x2x8x4xf32, #seq> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %values = dist.redistribute %v : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %y = aten.scaled_dot_product_attention %q, %keys, %values : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>) -> tensor<1x2x8x4xf32, #seq>
  return %y : tensor<1x2x8x4xf32, #seq>
}

// The columns of a mask are those of the block. A query that sees no key has the logsumexp of the op, which is 0.
// CHECK-LABEL: func.func @masked(
// CHECK: %[[FROM:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK: %[[MASK:.*]] = aten.slice %arg3 dim 1 [%[[FROM]] :
// CHECK: aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg2 mask(%[[MASK]]) partial gqa scale 5.000000e-01
// CHECK-COUNT-3: aten.log
// CHECK: %[[NONE:.*]] = aten.eq %[[SUM:.*]], %{{.*}} : (tensor<1x2x8xf32>, tensor<f32>)
// CHECK: %[[OUT:.*]] = aten.where %[[NONE]], %{{.*}}, %[[SUM]] :
// CHECK: return %{{.*}}, %[[OUT]]
func.func @masked(%q: tensor<1x2x8x4xf32, #R>, %k: tensor<1x1x8x4xf32, #seq>, %v: tensor<1x1x8x4xf32, #seq>, %mask: tensor<8x8xi1, #R>) -> (tensor<1x2x8x4xf32, #R>, tensor<1x2x8xf32, #R>) {
  %keys = dist.redistribute %k : tensor<1x1x8x4xf32, #seq> to tensor<1x1x8x4xf32, #R>
  %values = dist.redistribute %v : tensor<1x1x8x4xf32, #seq> to tensor<1x1x8x4xf32, #R>
  %y, %l = aten.scaled_dot_product_flash_attention %q, %keys, %values mask(%mask) gqa scale 0.5 : (tensor<1x2x8x4xf32, #R>, tensor<1x1x8x4xf32, #R>, tensor<1x1x8x4xf32, #R>, tensor<8x8xi1, #R>) -> (tensor<1x2x8x4xf32, #R>, tensor<1x2x8xf32, #R>)
  return %y, %l : tensor<1x2x8x4xf32, #R>, tensor<1x2x8xf32, #R>
}

// Of a block of a rank behind it a rank takes no keys. In the balanced order it has rows of one chunk at the beginning and one at the end of the
// sequence: chunk 2 r goes to rank 0, 2, 3 or 1.
// CHECK-LABEL: func.func @causal(
// CHECK: aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg2 causal partial
// CHECK: %[[SEEN:.*]] = dist.extent #dist.extents<table [0, 2, 2, 2] over #mesh>
// CHECK: %[[K:.*]] = aten.slice %{{.*}} dim 2 [0 : %[[SEEN]] : 1] : (tensor<1x2x2x4xf32>) -> tensor<1x2x?x4xf32>
// CHECK: aten.scaled_dot_product_flash_attention %arg0, %[[K]], %{{.*}} partial
// BALANCED-LABEL: func.func @causal(
// BALANCED: dist.permute over #sp pairs {{\[\[0, 0\], \[1, 2\], \[2, 3\], \[3, 1\]\]}} %{{.*}} : tensor<1x2x1x4xf32>
// BALANCED: dist.permute over #sp pairs {{\[\[0, 1\], \[1, 3\], \[2, 2\], \[3, 0\]\]}} %{{.*}} : tensor<1x2x1x4xf32>
// BALANCED: aten.scaled_dot_product_flash_attention %{{.*}} causal partial : (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>)
// BALANCED-COUNT-6: aten.scaled_dot_product_flash_attention %{{.*}} partial : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>)
// BALANCED: dist.permute over #sp pairs {{\[\[0, 0\], \[2, 1\], \[3, 2\], \[1, 3\]\]}}
// BALANCED: dist.permute over #sp pairs {{\[\[1, 0\], \[3, 1\], \[2, 2\], \[0, 3\]\]}}
func.func @causal(%q: tensor<1x2x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %v: tensor<1x2x8x4xf32, #seq>) -> tensor<1x2x8x4xf32, #seq> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %values = dist.redistribute %v : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %y = aten.scaled_dot_product_attention %q, %keys, %values causal : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>) -> tensor<1x2x8x4xf32, #seq>
  return %y : tensor<1x2x8x4xf32, #seq>
}

// Blocks of different sizes: ranks 0 to 3 send what they have, and later what came from the rank before. Views behind the gather are those of
// each block.
// CHECK-LABEL: func.func @uneven(
// CHECK: dist.permute over #sp pairs {{\[.*\]}} %arg1 dim 2 extents [3, 0, 4, 1], %{{.*}} dim 1 extents [3, 0, 4, 1]
// CHECK: aten.transpose %{{.*}} [1, 2] : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
// CHECK: dist.permute over #sp pairs {{\[.*\]}} %{{.*}} dim 2 extents [1, 3, 0, 4], %{{.*}} dim 1 extents [1, 3, 0, 4]
func.func @uneven(%q: tensor<1x2x8x4xf32, #uneven>, %k: tensor<1x2x8x4xf32, #uneven>, %v: tensor<1x8x2x4xf32, #dist.layout<#mesh, [S(1, sizes = [3, 0, 4, 1])]>>) -> tensor<1x2x8x4xf32, #uneven> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #uneven> to tensor<1x2x8x4xf32, #R>
  %gathered = dist.redistribute %v : tensor<1x8x2x4xf32, #dist.layout<#mesh, [S(1, sizes = [3, 0, 4, 1])]>> to tensor<1x8x2x4xf32, #R>
  %values = aten.transpose %gathered [1, 2] : (tensor<1x8x2x4xf32, #R>) -> tensor<1x2x8x4xf32, #R>
  %y = aten.scaled_dot_product_attention %q, %keys, %values causal : (tensor<1x2x8x4xf32, #uneven>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>) -> tensor<1x2x8x4xf32, #uneven>
  return %y : tensor<1x2x8x4xf32, #uneven>
}

// What a rank makes for a block goes on with it, and the owner adds its own part last. Without gather and reduce-scatter: the sums have their type.
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: dist.all_gather
// CHECK: %[[G:.*]], %[[DK:.*]], %[[DV:.*]] = aten.scaled_dot_product_flash_attention_backward %arg0, %arg1, %arg2, %arg3, %{{.*}}, %{{.*}} causal partial
// CHECK: %{{.*}}, %[[DK1:.*]], %[[DV1:.*]] = aten.scaled_dot_product_flash_attention_backward %arg0, %arg1, %{{.*}} partial
// CHECK: dist.permute over #sp pairs {{\[.*\]}} %{{.*}}, %{{.*}} : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
// CHECK-NOT: dist.reduce_scatter
// CHECK-DAG: aten.add %{{.*}}, %[[DK]] :
// CHECK-DAG: aten.add %{{.*}}, %[[DV]] :
// CHECK-NOT: dist.reduce_scatter
// CHECK: return
// BALANCED-LABEL: func.func @backward(
// BALANCED-NOT: dist.reduce_scatter
// BALANCED: aten.scaled_dot_product_flash_attention_backward %{{.*}} causal partial :
// BALANCED: aten.scaled_dot_product_flash_attention_backward %{{.*}} partial : (tensor<1x2x1x4xf32>,
func.func @backward(%g: tensor<1x2x8x4xf32, #seq>, %q: tensor<1x2x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %v: tensor<1x2x8x4xf32, #seq>)
    -> (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>) {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %values = dist.redistribute %v : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %o, %l = aten.scaled_dot_product_flash_attention %q, %keys, %values causal : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>) -> (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8xf32, #seq>)
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %keys, %values, %o, %l causal
      : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8xf32, #seq>)
      -> (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #P>, tensor<1x2x8x4xf32, #P>)
  %dk = dist.redistribute %d#1 : tensor<1x2x8x4xf32, #P> to tensor<1x2x8x4xf32, #seq>
  %dv = dist.redistribute %d#2 : tensor<1x2x8x4xf32, #P> to tensor<1x2x8x4xf32, #seq>
  return %o, %d#0, %dk, %dv : tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>
}

// Nobody asks for the cotangent of the keys.
// CHECK-LABEL: func.func @of_values(
// CHECK: aten.scaled_dot_product_flash_attention_backward {{.*}} partial :
// CHECK: dist.permute over #sp pairs {{\[.*\]}} %{{[^,]*}} : tensor<1x2x2x4xf32>
func.func @of_values(%g: tensor<1x2x8x4xf32, #seq>, %q: tensor<1x2x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %v: tensor<1x2x8x4xf32, #seq>, %l: tensor<1x2x8xf32, #seq>)
    -> tensor<1x2x8x4xf32, #seq> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %values = dist.redistribute %v : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %keys, %values, %g, %l
      : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8xf32, #seq>)
      -> (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #P>, tensor<1x2x8x4xf32, #P>)
  %dv = dist.redistribute %d#2 : tensor<1x2x8x4xf32, #P> to tensor<1x2x8x4xf32, #seq>
  return %dv : tensor<1x2x8x4xf32, #seq>
}

// All ranks have all queries of causal attention: some see a part of a block.
// CHECK-LABEL: func.func @unaligned(
// CHECK: dist.all_gather
func.func @unaligned(%q: tensor<1x2x8x4xf32, #R>, %k: tensor<1x2x8x4xf32, #seq>) -> tensor<1x2x8x4xf32, #R> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %y = aten.scaled_dot_product_attention %q, %keys, %keys causal : (tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>) -> tensor<1x2x8x4xf32, #R>
  return %y : tensor<1x2x8x4xf32, #R>
}

// The cotangent of all keys is used as a whole.
// CHECK-LABEL: func.func @used_otherwise(
// CHECK: dist.all_gather
func.func @used_otherwise(%g: tensor<1x2x8x4xf32, #seq>, %q: tensor<1x2x8x4xf32, #seq>, %k: tensor<1x2x8x4xf32, #seq>, %l: tensor<1x2x8xf32, #seq>) -> tensor<1x2x8x4xf32, #P> {
  %keys = dist.redistribute %k : tensor<1x2x8x4xf32, #seq> to tensor<1x2x8x4xf32, #R>
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %keys, %keys, %g, %l
      : (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #R>, tensor<1x2x8x4xf32, #seq>, tensor<1x2x8xf32, #seq>)
      -> (tensor<1x2x8x4xf32, #seq>, tensor<1x2x8x4xf32, #P>, tensor<1x2x8x4xf32, #P>)
  return %d#1 : tensor<1x2x8x4xf32, #P>
}
