// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --split-input-file --verify-diagnostics %s | FileCheck %s

// The greedy planner. What the cheapest one does is in cheapest.mlir.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#S00 = #dist.layout<#mesh, [S(0), S(0)]>
#S0R = #dist.layout<#mesh, [S(0), R]>
#RS0 = #dist.layout<#mesh, [R, S(0)]>
#RR = #dist.layout<#mesh, [R, R]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#S1P = #dist.layout<#mesh, [S(1), P(sum)]>

// An inner axis cannot take the outer one's place (R1): rows are gathered over both, in order, before tp splits them anew.
// CHECK-LABEL: func.func @misaligned
// CHECK-NEXT: %[[A:.*]] = dist.redistribute %arg0 by all_gather : tensor<5x3xf32, #S0dp_S0tp> to tensor<5x3xf32, #R>
// CHECK-NEXT: %[[B:.*]] = dist.redistribute %[[A]] by slice : tensor<5x3xf32, #R> to tensor<5x3xf32, #S0tp>
// CHECK-NEXT: return %[[B]]
func.func @misaligned(%x: tensor<5x3xf32, #S00>) -> tensor<5x3xf32, #RS0> {
  // A rank with one row of three floats gets the four others.
  // expected-remark @+1 {{is redistributed from [S(0), S(0)] to [R, S(0)] by way of [R, R]: 48 bytes a rank to gather it}}
  %y = dist.redistribute %x : tensor<5x3xf32, #S00> to tensor<5x3xf32, #RS0>
  return %y : tensor<5x3xf32, #RS0>
}

// One reduction over both axes is one step.
// CHECK-LABEL: func.func @reduce_both
// CHECK-NEXT: dist.redistribute %arg0 by all_reduce : tensor<5x3xf32, #{{.*}}> to tensor<5x3xf32, #R>
// CHECK-NEXT: return
func.func @reduce_both(%x: tensor<5x3xf32, #PP>) -> tensor<5x3xf32, #RR> {
  %y = dist.redistribute %x : tensor<5x3xf32, #PP> to tensor<5x3xf32, #RR>
  return %y : tensor<5x3xf32, #RR>
}

// The marks of a backward redistribution stay on all of its steps.
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: dist.redistribute backward
// CHECK-NEXT: return
func.func @backward(%x: tensor<6x4xf32, #S1P>) -> tensor<6x4xf32, #RR> {
  %y = dist.redistribute backward %x : tensor<6x4xf32, #S1P> to tensor<6x4xf32, #RR>
  return %y : tensor<6x4xf32, #RR>
}

// Two gathers along one dim are one over the product of their groups, and so are two reduce-scatters.
// CHECK-LABEL: func.func @gather_both
// CHECK-NEXT: dist.redistribute %arg0 by all_gather : tensor<5x3xf32, #S0dp_S0tp> to tensor<5x3xf32, #R>
// CHECK-NEXT: dist.redistribute %arg1 by reduce_scatter : tensor<5x3xf32, #{{.*}}> to tensor<5x3xf32, #S0dp_S0tp>
// CHECK-NEXT: return
func.func @gather_both(%x: tensor<5x3xf32, #S00>, %y: tensor<5x3xf32, #PP>) -> (tensor<5x3xf32, #RR>, tensor<5x3xf32, #S00>) {
  %a = dist.redistribute %x : tensor<5x3xf32, #S00> to tensor<5x3xf32, #RR>
  %b = dist.redistribute %y : tensor<5x3xf32, #PP> to tensor<5x3xf32, #S00>
  return %a, %b : tensor<5x3xf32, #RR>, tensor<5x3xf32, #S00>
}

// Not in blocks: an axis at a time.
// CHECK-LABEL: func.func @gather_blocks
// CHECK-COUNT-2: dist.redistribute
// CHECK-NEXT: return
func.func @gather_blocks(%x: tensor<12x3xf32, #dist.layout<#mesh, [S(0, blocks = 3), S(0)]>>) -> tensor<12x3xf32, #RR> {
  %a = dist.redistribute %x : tensor<12x3xf32, #dist.layout<#mesh, [S(0, blocks = 3), S(0)]>> to tensor<12x3xf32, #RR>
  return %a : tensor<12x3xf32, #RR>
}
