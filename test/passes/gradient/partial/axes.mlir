// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-rewrite-partial-gradients --dist-verify-stage=placed | FileCheck %s --implicit-check-not=dist.sharding
// RUN: shard-opt %s --dist-rewrite-partial-gradients=gradients=cheapest --dist-verify-stage=placed | FileCheck %s --check-prefix=CHEAPEST
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients=gradients=off | FileCheck %s --check-prefix=RAN %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients | FileCheck %s --check-prefixes=REPLICATED,RAN %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients=gradients=cheapest | FileCheck %s --check-prefix=RAN %}

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#RR = #dist.layout<#mesh, [R, R]>
#RP = #dist.layout<#mesh, [R, P(sum)]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#PR = #dist.layout<#mesh, [P(sum), R]>
#SR = #dist.layout<#mesh, [S(0), R]>
#SP = #dist.layout<#mesh, [S(0), P(sum)]>
#SS = #dist.layout<#mesh, [S(0), S(1)]>
#mixed = #dist.layout<#mesh, [P(sum), S(1)]>
#nested = #dist.layout<#mesh, [S(0), S(0)]>

module attributes {dist.mesh = #mesh} {
  // Only the axis of the sub-group that was partial changes: the other is sharded before and after.
  // REPLICATED: group: no collectives
  // CHECK-LABEL: func.func @group(
  // CHECK-NEXT: aten.gelu %arg0 {{.*}} -> tensor<6x8xf32, #S0dp>
  // CHECK-NEXT: return
  func.func @group(%g: tensor<6x8xf32, #SR>) -> tensor<6x8xf32, #SR> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #SR> to tensor<6x8xf32, #SP>
    %r = dist.redistribute %p : tensor<6x8xf32, #SP> to tensor<6x8xf32, #SR>
    %h = aten.gelu %r : (tensor<6x8xf32, #SR>) -> tensor<6x8xf32, #SR>
    return %h : tensor<6x8xf32, #SR>
  }

  // Partial over dp already, and stays so; whole over tp.
  // REPLICATED: one_of_two: all_reduce 1
  // CHECK-LABEL: func.func @one_of_two(
  // CHECK-NEXT: aten.add %arg0, %arg1 : (tensor<6x8xf32, #Pdp>, tensor<6x8xf32, #Pdp>) -> tensor<6x8xf32, #Pdp>
  // CHECK-NEXT: dist.redistribute {{.*}} : tensor<6x8xf32, #Pdp> to tensor<6x8xf32, #R>
  func.func @one_of_two(%g: tensor<6x8xf32, #PR>, %h: tensor<6x8xf32, #PR>) -> tensor<6x8xf32, #RR> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #PR> to tensor<6x8xf32, #PP>
    %q = dist.redistribute %h : tensor<6x8xf32, #PR> to tensor<6x8xf32, #PP>
    %s = aten.add %p, %q : (tensor<6x8xf32, #PP>, tensor<6x8xf32, #PP>) -> tensor<6x8xf32, #PP>
    %r = dist.redistribute backward %s : tensor<6x8xf32, #PP> to tensor<6x8xf32, #RR>
    return %r : tensor<6x8xf32, #RR>
  }

  // Partial becomes sharded on one axis, sharded would become partial on the other: scattered there, gathered here.
  // REPLICATED: mixed: all_gather 1, reduce_scatter 1
  // CHECK-LABEL: func.func @mixed(
  // CHECK-NEXT: dist.redistribute backward %arg0 : tensor<6x8xf32, #S0dp_Ptp> to tensor<6x8xf32, #S1tp>
  // CHECK-NEXT: dist.redistribute {{.*}} : tensor<6x8xf32, #S1tp> to tensor<6x8xf32, #S0dp_S1tp>
  // CHECK-NEXT: aten.gelu
  func.func @mixed(%g: tensor<6x8xf32, #SP>) -> tensor<6x8xf32, #SS> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #SP> to tensor<6x8xf32, #mixed>
    %r = dist.redistribute %p : tensor<6x8xf32, #mixed> to tensor<6x8xf32, #SS>
    %h = aten.gelu %r : (tensor<6x8xf32, #SS>) -> tensor<6x8xf32, #SS>
    return %h : tensor<6x8xf32, #SS>
  }

  // Both axes, five rows nested over them (2, 1 | 1, 1): gathered. The cheapest leaves the rows where they are.
  // REPLICATED: both: all_gather
  // CHECK-LABEL: func.func @both(
  // CHECK-NEXT: dist.redistribute backward %arg0 : tensor<5x8xf32, #S0dp_S0tp> to tensor<5x8xf32, #R>
  // CHEAPEST-LABEL: func.func @both(
  // CHEAPEST-NEXT: aten.gelu %arg0 {{.*}} -> tensor<5x8xf32, #S0dp_S0tp>
  // CHEAPEST-NEXT: return
  func.func @both(%g: tensor<5x8xf32, #nested>) -> tensor<5x8xf32, #nested> {
    %p = dist.redistribute backward %g : tensor<5x8xf32, #nested> to tensor<5x8xf32, #PP>
    %r = dist.redistribute %p : tensor<5x8xf32, #PP> to tensor<5x8xf32, #nested>
    %h = aten.gelu %r : (tensor<5x8xf32, #nested>) -> tensor<5x8xf32, #nested>
    return %h : tensor<5x8xf32, #nested>
  }

  // A cotangent that comes in partial over both axes is reduced once, at the end.
  // REPLICATED: cotangent: all_reduce 1
  // CHECK-LABEL: func.func @cotangent(
  // CHECK-NEXT: %[[P:.*]] = dist.redistribute backward %arg0 : tensor<6x8xf32, #Pdp_Ptp> to tensor<6x8xf32, #Pdp_Ptp>
  // CHECK-NEXT: dist.redistribute backward %[[P]] : tensor<6x8xf32, #Pdp_Ptp> to tensor<6x8xf32, #R>
  func.func @cotangent(%g: tensor<6x8xf32, #PP>) -> tensor<6x8xf32, #RR> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #PP> to tensor<6x8xf32, #PP>
    %r = dist.redistribute backward %p : tensor<6x8xf32, #PP> to tensor<6x8xf32, #RR>
    return %r : tensor<6x8xf32, #RR>
  }
}

// RAN: {{^}}5 functions, 0 failures
