// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions --dist-localize --canonicalize --cse --split-input-file %s | FileCheck %s

// What a redistribution between meshes becomes (R3).

#A = #dist.mesh<["a" = 2]>
#B = #dist.mesh<["b" = 2], devices = [2, 3]>
#there = #dist.layout<#B, [S(0)]>
#here = #dist.layout<#A, [S(0)]>

// No rank has the tensor on both sides: what the ranks of #A have is sent as it is.
// CHECK-LABEL: func.func @apart(
// CHECK-SAME: %[[X:.*]]: tensor<4x2xf32> {dist.global_type = tensor<8x2xf32>, dist.layout = #dist.layout<#{{.*}}, [S(0)]>}
// CHECK-SAME: -> (tensor<4x2xf32> {dist.global_type = tensor<8x2xf32>, dist.layout = #S0b})
// CHECK: %[[SENT:.*]] = dist.leave_mesh on #{{.*}} %{{.*}} : tensor<8xf32> to tensor<?xf32>
// CHECK: %[[GOT:.*]] = dist.all_to_all over #ranks %[[SENT]] split 0 extents [{{.*}}] concat 0 extents [{{.*}}] : tensor<?xf32>
// CHECK: %[[FLAT:.*]] = dist.enter_mesh on #{{.*}} %[[GOT]] : tensor<?xf32> to tensor<8xf32>
// CHECK: aten.view %[[FLAT]] [4, 2]
// CHECK: return %{{.*}} : tensor<4x2xf32>
func.func @apart(%x: tensor<8x2xf32, #here>) -> tensor<8x2xf32, #there> {
  %y = dist.redistribute %x : tensor<8x2xf32, #here> to tensor<8x2xf32, #there>
  return %y : tensor<8x2xf32, #there>
}

// -----

#A = #dist.mesh<["a" = 2, "b" = 2]>
#B = #dist.mesh<["x" = 4]>
#S00 = #dist.layout<#A, [S(0), S(0)]>
#PR = #dist.layout<#A, [P(sum), R]>
#S0 = #dist.layout<#B, [S(0)]>
#R = #dist.layout<#B, [R]>

// The same split in other words: nothing moves.
// CHECK-LABEL: func.func @same
// CHECK-NEXT: return %arg0 : tensor<2x2xf32>
func.func @same(%x: tensor<8x2xf32, #S00>) -> tensor<8x2xf32, #S0> {
  %y = dist.redistribute %x : tensor<8x2xf32, #S00> to tensor<8x2xf32, #S0>
  return %y : tensor<8x2xf32, #S0>
}

// Nor does anybody lack a part of what all have.
// CHECK-LABEL: func.func @slice
// CHECK: %[[AT:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over
// CHECK-NOT: dist.all
// CHECK: aten.slice %arg0 dim 0 [%[[AT]] :
// CHECK: return %{{.*}} : tensor<2x2xf32>
#RR = #dist.layout<#A, [R, R]>
func.func @slice(%x: tensor<8x2xf32, #RR>) -> tensor<8x2xf32, #S0> {
  %y = dist.redistribute %x : tensor<8x2xf32, #RR> to tensor<8x2xf32, #S0>
  return %y : tensor<8x2xf32, #S0>
}

// A partial value is reduced on its own mesh, in the shares that are needed.
// CHECK-LABEL: func.func @partial
// CHECK: dist.reduce_scatter sum over #a
// CHECK-NOT: dist.all_reduce
#PS = #dist.layout<#A, [P(sum), S(0)]>
func.func @partial(%x: tensor<8x2xf32, #PS>) -> tensor<8x2xf32, #S0> {
  %y = dist.redistribute %x : tensor<8x2xf32, #PS> to tensor<8x2xf32, #S0>
  return %y : tensor<8x2xf32, #S0>
}

// -----

#A = #dist.mesh<["a" = 2, "b" = 2]>
#B = #dist.mesh<["x" = 2], devices = [1, 3]>
#here = #dist.layout<#A, [R, R]>
#there = #dist.layout<#B, [R]>

// A number has no dim that says who has it, and each rank of #B has it already.
// CHECK-LABEL: func.func @scalar(%arg0: tensor<f32>
// CHECK-NEXT: %[[FLAT:.*]] = aten.view %arg0 [1] : (tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT: %[[THERE:.*]] = dist.enter_mesh on #{{.*}} %[[FLAT]] : tensor<1xf32> to tensor<1xf32>
// CHECK-NEXT: aten.view %[[THERE]] [] : (tensor<1xf32>) -> tensor<f32>
func.func @scalar(%x: tensor<f32, #here>) -> tensor<f32, #there> {
  %y = dist.redistribute %x : tensor<f32, #here> to tensor<f32, #there>
  return %y : tensor<f32, #there>
}

// -----

#A = #dist.mesh<["a" = 2]>
#B = #dist.mesh<["b" = 2], devices = [1, 0]>
#here = #dist.layout<#A, [S(0)]>
#there = #dist.layout<#B, [S(0)]>

// The devices in another order: every shard goes to another rank as it is.
// CHECK-LABEL: func.func @turned
// CHECK-NEXT: dist.permute over #{{.*}} pairs {{\[\[}}1, 0], [0, 1]] %arg0 : tensor<2x?xf32>
func.func @turned(%x: tensor<4x?xf32, #here> {dist.sizes = [#dist.size<4>, #dist.size<n>]}) -> tensor<4x?xf32, #there> attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %y = dist.redistribute %x : tensor<4x?xf32, #here> to tensor<4x?xf32, #there>
  return %y : tensor<4x?xf32, #there>
}
