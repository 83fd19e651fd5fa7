// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions --dist-localize --canonicalize --cse %s | FileCheck %s

// On 64 ranks each has two neighbours at most: what it cuts for them, and what comes of them, are two slices, not one for each rank.
#mesh = #dist.mesh<["h" = 64]>
#R = #dist.layout<#mesh, [R]>
#S2 = #dist.layout<#mesh, [S(2)]>

// CHECK-LABEL: func.func @border(
// CHECK-COUNT-2: aten.slice %arg0 dim 2
// CHECK-NOT: aten.slice
// CHECK: dist.all_to_all over #h
// CHECK-COUNT-2: aten.slice %{{.*}} dim 0
// CHECK-NOT: dim 0
// CHECK: aten.convolution
// CHECK: return
func.func @border(%x: tensor<1x4x131x16xf32, #S2>, %w: tensor<4x4x3x3xf32, #R>) -> tensor<1x4x131x16xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x4x131x16xf32, #S2>, tensor<4x4x3x3xf32, #R>) -> tensor<1x4x131x16xf32, #S2>
  return %0 : tensor<1x4x131x16xf32, #S2>
}
