// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-widen-reductions | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#RP = #dist.layout<#mesh, [R, P(sum)]>
#RS = #dist.layout<#mesh, [R, S(0)]>
#RR = #dist.layout<#mesh, [R, R]>

// CHECK-DAG: #[[PP:.*]] = #dist.layout<#mesh, [P(sum), P(sum)]>
// CHECK-DAG: #[[RP:.*]] = #dist.layout<#mesh, [R, P(sum)]>
// CHECK-DAG: #[[RS:.*]] = #dist.layout<#mesh, [R, S(0)]>
// CHECK-DAG: #[[RR:.*]] = #dist.layout<#mesh, [R, R]>

// Both sums come behind the cast, in their order.
// CHECK-LABEL: func.func @two
// CHECK: %[[W:.*]] = aten.to_copy %arg0 to f32 : (tensor<2x4xbf16, #[[PP]]>) -> tensor<2x4xf32, #[[PP]]>
// CHECK: %[[A:.*]] = dist.redistribute backward %[[W]] : tensor<2x4xf32, #[[PP]]> to tensor<2x4xf32, #[[RP]]>
// CHECK: %[[B:.*]] = dist.redistribute backward %[[A]] : tensor<2x4xf32, #[[RP]]> to tensor<2x4xf32, #[[RS]]>
// CHECK: return %[[B]]
func.func @two(%g: tensor<2x4xbf16, #PP>) -> tensor<2x4xf32, #RS> {
  %a = dist.redistribute backward %g : tensor<2x4xbf16, #PP> to tensor<2x4xbf16, #RP>
  %b = dist.redistribute backward %a : tensor<2x4xbf16, #RP> to tensor<2x4xbf16, #RS>
  %w = aten.to_copy %b to f32 {dist.widen} : (tensor<2x4xbf16, #RS>) -> tensor<2x4xf32, #RS>
  return %w : tensor<2x4xf32, #RS>
}

// A sum that something else reads as well stays for that.
// CHECK-LABEL: func.func @shared
// CHECK: %[[S:.*]] = dist.redistribute backward %arg0 : tensor<2x4xbf16, #[[RP]]> to tensor<2x4xbf16, #[[RR]]>
// CHECK: %[[W:.*]] = aten.to_copy %arg0 to f32
// CHECK: %[[T:.*]] = dist.redistribute backward %[[W]] : tensor<2x4xf32, #[[RP]]> to tensor<2x4xf32, #[[RR]]>
// CHECK: return %[[S]], %[[T]]
func.func @shared(%g: tensor<2x4xbf16, #RP>) -> (tensor<2x4xbf16, #RR>, tensor<2x4xf32, #RR>) {
  %s = dist.redistribute backward %g : tensor<2x4xbf16, #RP> to tensor<2x4xbf16, #RR>
  %w = aten.to_copy %s to f32 {dist.widen} : (tensor<2x4xbf16, #RR>) -> tensor<2x4xf32, #RR>
  return %s, %w : tensor<2x4xbf16, #RR>, tensor<2x4xf32, #RR>
}

// A gather moves fewer bytes before the cast, and a cast without the mark is left alone; the mark goes.
// CHECK-LABEL: func.func @others
// CHECK: %[[G:.*]] = dist.redistribute %arg0 : tensor<2x4xbf16, #[[RS]]> to tensor<2x4xbf16, #[[RR]]>
// CHECK: %[[W:.*]] = aten.to_copy %[[G]] to f32 : (tensor<2x4xbf16, #[[RR]]>)
// CHECK: %[[S:.*]] = dist.redistribute backward %arg1 : tensor<2x4xbf16, #[[RP]]> to tensor<2x4xbf16, #[[RR]]>
// CHECK: %[[V:.*]] = aten.to_copy %[[S]] to f32 : (tensor<2x4xbf16, #[[RR]]>)
// CHECK: return %[[W]], %[[V]]
func.func @others(%x: tensor<2x4xbf16, #RS>, %g: tensor<2x4xbf16, #RP>) -> (tensor<2x4xf32, #RR>, tensor<2x4xf32, #RR>) {
  %a = dist.redistribute %x : tensor<2x4xbf16, #RS> to tensor<2x4xbf16, #RR>
  %w = aten.to_copy %a to f32 {dist.widen} : (tensor<2x4xbf16, #RR>) -> tensor<2x4xf32, #RR>
  %s = dist.redistribute backward %g : tensor<2x4xbf16, #RP> to tensor<2x4xbf16, #RR>
  %v = aten.to_copy %s to f32 : (tensor<2x4xbf16, #RR>) -> tensor<2x4xf32, #RR>
  return %w, %v : tensor<2x4xf32, #RR>, tensor<2x4xf32, #RR>
}
