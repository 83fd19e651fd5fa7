// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-plan-redistributions="latency=0" --mlir-pass-statistics -o %t.mlir 2>&1 | FileCheck %s --check-prefix=STATISTICS
// RUN: FileCheck %s --input-file %t.mlir
// RUN: shard-opt %s --dist-plan-redistributions="planner=greedy" | FileCheck %s --check-prefix=GREEDY

// STATISTICS: (S) 2 shared - Redistributions that start from a layout that another one made

#mesh = #dist.mesh<["fs" = 2, "tp" = 2]>
#SS = #dist.layout<#mesh, [S(0), S(1)]>
#SR = #dist.layout<#mesh, [S(0), R]>
#RR = #dist.layout<#mesh, [R, R]>
#RS = #dist.layout<#mesh, [R, S(1)]>

// What a step of an earlier one made is what a later one starts from: a gather over fs alone, and no exchange.
// CHECK-LABEL: func.func @later(
// CHECK-NEXT: %[[TP:.*]] = dist.redistribute %arg0 by all_gather : tensor<8x8xf32, #S0fs_S1tp> to tensor<8x8xf32, #S0fs>
// CHECK-NEXT: %[[ALL:.*]] = dist.redistribute %[[TP]] by all_gather : tensor<8x8xf32, #S0fs> to tensor<8x8xf32, #R>
// CHECK-NEXT: return %[[TP]], %[[ALL]]
// GREEDY-LABEL: func.func @later(
// GREEDY-COUNT-2: dist.redistribute %arg0
func.func @later(%x: tensor<8x8xf32, #SS>) -> (tensor<8x8xf32, #SR>, tensor<8x8xf32, #RR>) {
  %a = dist.redistribute %x : tensor<8x8xf32, #SS> to tensor<8x8xf32, #SR>
  %b = dist.redistribute %x : tensor<8x8xf32, #SS> to tensor<8x8xf32, #RR>
  return %a, %b : tensor<8x8xf32, #SR>, tensor<8x8xf32, #RR>
}

// What an earlier one makes on its way is used as it is.
// CHECK-LABEL: func.func @onTheWay(
// CHECK-NEXT: %[[PART:.*]] = dist.redistribute %arg0 by all_gather : tensor<8x8xf32, #S0fs_S1tp> to tensor<8x8xf32, #S1tp>
// CHECK-NEXT: %[[ALL:.*]] = dist.redistribute %[[PART]] by all_gather : tensor<8x8xf32, #S1tp> to tensor<8x8xf32, #R>
// CHECK-NEXT: return %[[ALL]], %[[PART]]
func.func @onTheWay(%x: tensor<8x8xf32, #SS>) -> (tensor<8x8xf32, #RR>, tensor<8x8xf32, #RS>) {
  %a = dist.redistribute %x : tensor<8x8xf32, #SS> to tensor<8x8xf32, #RR>
  %b = dist.redistribute %x : tensor<8x8xf32, #SS> to tensor<8x8xf32, #RS>
  return %a, %b : tensor<8x8xf32, #RR>, tensor<8x8xf32, #RS>
}

// Another value is another value.
// CHECK-LABEL: func.func @others(
// CHECK-NEXT: dist.redistribute %arg0
// CHECK-NEXT: dist.redistribute %arg1
func.func @others(%x: tensor<8x8xf32, #SS>, %y: tensor<8x8xf32, #SS>) -> (tensor<8x8xf32, #SR>, tensor<8x8xf32, #SR>) {
  %a = dist.redistribute %x : tensor<8x8xf32, #SS> to tensor<8x8xf32, #SR>
  %b = dist.redistribute %y : tensor<8x8xf32, #SS> to tensor<8x8xf32, #SR>
  return %a, %b : tensor<8x8xf32, #SR>, tensor<8x8xf32, #SR>
}
