// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions --split-input-file --verify-diagnostics %s | FileCheck %s
// RUN: shard-opt --dist-plan-redistributions=latency=0 --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=BYTES
// RUN: shard-opt --dist-plan-redistributions="latency=0 bandwidth=dp=1,tp=100" --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=SLOW
// RUN: shard-opt --dist-plan-redistributions --dist-plan-redistributions=planner=greedy --split-input-file %s 2>/dev/null | FileCheck %s
// RUN: not shard-opt --dist-plan-redistributions="latency=five bandwidth=pp=3 topology=none" --split-input-file %s 2>&1 | FileCheck %s --check-prefix=OPTIONS

// OPTIONS: topology: {{.*}}none
// OPTIONS: latency: expected a number, or an axis and a number as in tp=5, got 'five'
// OPTIONS: bandwidth: no mesh has an axis named 'pp'

#mesh = #dist.mesh<["dp" = 4, "tp" = 2]>
#S00 = #dist.layout<#mesh, [S(0), S(0)]>
#S00r = #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]>
#S11 = #dist.layout<#mesh, [S(1), S(1)]>
#RS0 = #dist.layout<#mesh, [R, S(0)]>
#S0R = #dist.layout<#mesh, [S(0), R]>
#RR = #dist.layout<#mesh, [R, R]>
#PR = #dist.layout<#mesh, [P(sum), R]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#S0P = #dist.layout<#mesh, [S(0), P(sum)]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 2), R]>

// Nothing becomes whole that need not be: no remark. The gather for the first is over the four ranks of dp alone, whose links
// the model rates better than those of all eight.
// CHECK-LABEL: func.func @exchanges
// CHECK-NEXT: dist.redistribute %arg0 by exchange
// CHECK-NEXT: dist.redistribute {{.*}} by all_gather
// CHECK-NEXT: dist.redistribute %arg1 by exchange
// CHECK-NEXT: dist.redistribute %arg2 by exchange
// CHECK-NEXT: dist.redistribute backward %arg3 by exchange
// CHECK-NEXT: return
func.func @exchanges(%x: tensor<320x1600xf32, #S00>, %x1: tensor<320x1600xf32, #S00>, %x2: tensor<320x1600xf32, #S00>, %y: tensor<320x1600xf32, #S0R>) -> (tensor<320x1600xf32, #RS0>, tensor<320x1600xf32, #S00r>, tensor<320x1600xf32, #S11>, tensor<320x1600xf32, #blocks>) {
  %a = dist.redistribute %x : tensor<320x1600xf32, #S00> to tensor<320x1600xf32, #RS0>
  %b = dist.redistribute %x1 : tensor<320x1600xf32, #S00> to tensor<320x1600xf32, #S00r>
  %c = dist.redistribute %x2 : tensor<320x1600xf32, #S00> to tensor<320x1600xf32, #S11>
  %d = dist.redistribute backward %y : tensor<320x1600xf32, #S0R> to tensor<320x1600xf32, #blocks>
  return %a, %b, %c, %d : tensor<320x1600xf32, #RS0>, tensor<320x1600xf32, #S00r>, tensor<320x1600xf32, #S11>, tensor<320x1600xf32, #blocks>
}

// Bytes that cost less than the latency of another step take fewer steps. By bytes alone each rank of tp reduces a half, in two
// halves, for that takes less memory.
// CHECK-LABEL: func.func @reduce
// CHECK-NEXT: dist.redistribute %arg0 by all_reduce
// CHECK-NEXT: return
// BYTES-LABEL: func.func @reduce
// BYTES-NEXT: dist.redistribute %arg0 by slice
// BYTES-NOT: all_reduce
// BYTES: dist.redistribute {{.*}} by all_gather
// BYTES: return
func.func @reduce(%x: tensor<32x16xf32, #PR>) -> tensor<32x16xf32, #RR> {
  %a = dist.redistribute %x : tensor<32x16xf32, #PR> to tensor<32x16xf32, #RR>
  return %a : tensor<32x16xf32, #RR>
}

// As little as can be crosses slow links.
// CHECK-LABEL: func.func @reduce_both
// CHECK-NEXT: dist.redistribute %arg0 by all_reduce
// CHECK-NEXT: return
// SLOW-LABEL: func.func @reduce_both
// SLOW-NEXT: dist.redistribute %arg0 by reduce_scatter : tensor<32x16xf32, #Pdp_Ptp> to tensor<32x16xf32, #Pdp_S0tp>
func.func @reduce_both(%x: tensor<32x16xf32, #PP>) -> tensor<32x16xf32, #RR> {
  %a = dist.redistribute %x : tensor<32x16xf32, #PP> to tensor<32x16xf32, #RR>
  return %a : tensor<32x16xf32, #RR>
}

// A step that is there already stays, and one split said in two ways is no step.
// CHECK-LABEL: func.func @planned
// CHECK-NEXT: dist.redistribute %arg0 by slice : {{.*}} to tensor<8x4xf32, #[[A:.*]]>
// CHECK-NEXT: dist.redistribute %{{.*}} : tensor<8x4xf32, #[[A]]> to
// CHECK-NEXT: return
func.func @planned(%x: tensor<8x4xf32, #RR>) -> tensor<8x4xf32, #dist.layout<#mesh, [S(0, sizes = [2, 2, 2, 2]), R]>> {
  %a = dist.redistribute %x by slice : tensor<8x4xf32, #RR> to tensor<8x4xf32, #S0R>
  %b = dist.redistribute %a : tensor<8x4xf32, #S0R> to tensor<8x4xf32, #dist.layout<#mesh, [S(0, sizes = [2, 2, 2, 2]), R]>>
  return %b : tensor<8x4xf32, #dist.layout<#mesh, [S(0, sizes = [2, 2, 2, 2]), R]>>
}

// A dim of unknown size is exchanged like another; messages are cut when the program runs.
// CHECK-LABEL: func.func @symbolic
// CHECK-NEXT: dist.redistribute %arg0 by exchange
// CHECK-NEXT: return
func.func @symbolic(%x: tensor<?x3200xf32, #S00> {dist.sizes = [#dist.size<n>, #dist.size<3200>]}) -> tensor<?x3200xf32, #S00r> attributes {dist.symbols = [#dist.symbol<n in [0, 64]>]} {
  %a = dist.redistribute %x : tensor<?x3200xf32, #S00> to tensor<?x3200xf32, #S00r>
  return %a : tensor<?x3200xf32, #S00r>
}

// Not in blocks, which go by way of another dim where it has a size.
// CHECK-LABEL: func.func @symbolic_blocks
// CHECK-NOT: by exchange
// CHECK: dist.redistribute {{.*}} by all_to_all : {{.*}} to tensor<?x3200xf32, #S1tp_S1dp>
// CHECK-NOT: by exchange
// CHECK: return
func.func @symbolic_blocks(%x: tensor<?x3200xf32, #S0R> {dist.sizes = [#dist.size<n>, #dist.size<3200>]}) -> tensor<?x3200xf32, #blocks> attributes {dist.symbols = [#dist.symbol<n in [0, 64]>], dist.constraints = [["==", ["mod", "n", 8], 0]]} {
  %a = dist.redistribute %x : tensor<?x3200xf32, #S0R> to tensor<?x3200xf32, #blocks>
  return %a : tensor<?x3200xf32, #blocks>
}

// Steps of one kind over axes that form one group are one collective, all-to-alls too.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT: dist.redistribute %arg0 by all_gather : tensor<320x1600xf32, #S0dp_S0tp> to tensor<320x1600xf32, #R>
// CHECK-NEXT: dist.redistribute %arg1 by reduce_scatter : tensor<320x1600xf32, #Pdp_Ptp> to tensor<320x1600xf32, #S0dp_S0tp>
// CHECK-NEXT: dist.redistribute %arg2 by exchange : tensor<320x1600xf32, #S0dp_S0tp> to tensor<320x1600xf32, #S1dp_S1tp>
// CHECK-NEXT: return
func.func @merged(%x: tensor<320x1600xf32, #S00>, %y: tensor<320x1600xf32, #PP>, %z: tensor<320x1600xf32, #S00>) -> (tensor<320x1600xf32, #RR>, tensor<320x1600xf32, #S00>, tensor<320x1600xf32, #S11>) {
  %a = dist.redistribute %x : tensor<320x1600xf32, #S00> to tensor<320x1600xf32, #RR>
  %b = dist.redistribute %y : tensor<320x1600xf32, #PP> to tensor<320x1600xf32, #S00>
  %c = dist.redistribute %z : tensor<320x1600xf32, #S00> to tensor<320x1600xf32, #S11>
  return %a, %b, %c : tensor<320x1600xf32, #RR>, tensor<320x1600xf32, #S00>, tensor<320x1600xf32, #S11>
}

// Nothing is sent in either order; the slice first takes half the memory.
// CHECK-LABEL: func.func @less_memory
// CHECK-NEXT: dist.redistribute %arg0 by slice
// CHECK-NEXT: dist.redistribute {{.*}} by zero_fill
// CHECK-NEXT: return
func.func @less_memory(%x: tensor<32x16xf32, #S0R>) -> tensor<32x16xf32, #dist.layout<#mesh, [P(sum), S(1)]>> {
  %a = dist.redistribute %x : tensor<32x16xf32, #S0R> to tensor<32x16xf32, #dist.layout<#mesh, [P(sum), S(1)]>>
  return %a : tensor<32x16xf32, #dist.layout<#mesh, [P(sum), S(1)]>>
}
