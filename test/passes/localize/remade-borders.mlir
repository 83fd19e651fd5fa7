// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that ranks make again of what another op's windows slide over, in place of fetching them. (What they compute is compared with
// PyTorch in test/e2e/window_cases.py.)
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse %s | FileCheck %s
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --mlir-pass-statistics %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATISTICS

// STATISTICS: 3 remade-borders

#mesh = #dist.mesh<["h" = 4]>
#R = #dist.layout<#mesh, [R]>
#S2 = #dist.layout<#mesh, [S(2)]>
#square = #dist.mesh<["h" = 2, "w" = 2]>
#Rsquare = #dist.layout<#square, [R, R]>
#S23 = #dist.layout<#square, [S(2), S(3)]>

// Two rows of 3 channels in place of one row of 3 and one of 64, in one exchange: the rows of 64 that are lacked are made by ops of their own.
// CHECK-LABEL: func.func @first_of_a_net(
// CHECK: dist.all_to_all over #h %{{.*}} split 0 extents
// CHECK-NOT: dist.{{all|permute}}
// CHECK: %[[OWN:.*]] = aten.convolution {{.*}} : (tensor<1x3x6x8xf32>, tensor<64x3x3x3xf32>, tensor<64xf32>) -> tensor<1x64x4x8xf32>
// CHECK: %[[OWN_RELU:.*]] = aten.relu %[[OWN]]
// CHECK: %[[BEFORE:.*]] = aten.convolution {{.*}} : (tensor<1x3x?x8xf32>, tensor<64x3x3x3xf32>, tensor<64xf32>) -> tensor<1x64x?x8xf32>
// CHECK: %[[BEFORE_RELU:.*]] = aten.relu %[[BEFORE]]
// CHECK: %[[BEHIND:.*]] = aten.convolution {{.*}} : (tensor<1x3x?x8xf32>, tensor<64x3x3x3xf32>, tensor<64xf32>) -> tensor<1x64x?x8xf32>
// CHECK: %[[BEHIND_RELU:.*]] = aten.relu %[[BEHIND]]
// CHECK: %[[COVERED:.*]] = aten.cat %{{.*}}, %[[BEFORE_RELU]], %[[OWN_RELU]], %[[BEHIND_RELU]], %{{.*}} dim 2
// CHECK: aten.convolution %[[COVERED]],
// CHECK: return
func.func @first_of_a_net(%x: tensor<1x3x16x8xf32, #S2>, %w: tensor<64x3x3x3xf32, #R>, %b: tensor<64xf32, #R>, %v: tensor<64x64x3x3xf32, #R>)
    -> tensor<1x64x16x8xf32, #S2> {
  %0 = aten.convolution %x, %w bias(%b) stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S2>, tensor<64x3x3x3xf32, #R>, tensor<64xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %1 = aten.relu %0 : (tensor<1x64x16x8xf32, #S2>) -> tensor<1x64x16x8xf32, #S2>
  %2 = aten.convolution %1, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<64x64x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  return %2 : tensor<1x64x16x8xf32, #S2>
}

// Another op with windows over the first image has the same exchange, and another user of the second one has this rank's rows.
// CHECK-LABEL: func.func @others(
// CHECK: dist.all_to_all
// CHECK-NOT: dist.{{all|permute}}
// CHECK: return
func.func @others(%x: tensor<1x3x16x8xf32, #S2>, %w: tensor<64x3x3x3xf32, #R>, %v: tensor<64x64x3x3xf32, #R>, %u: tensor<64x3x5x1xf32, #R>)
    -> (tensor<1x64x16x8xf32, #S2>, tensor<1x64x16x8xf32, #S2>) {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S2>, tensor<64x3x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %1 = aten.convolution %0, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<64x64x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %2 = aten.convolution %x, %u stride [1, 1] padding [2, 0] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S2>, tensor<64x3x5x1xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %3 = aten.add %0, %2 : (tensor<1x64x16x8xf32, #S2>, tensor<1x64x16x8xf32, #S2>) -> tensor<1x64x16x8xf32, #S2>
  return %1, %3 : tensor<1x64x16x8xf32, #S2>, tensor<1x64x16x8xf32, #S2>
}

// A convolution of 1 x 1 beside the one of 3 x 3 needs no rows of others.
// CHECK-LABEL: func.func @beside_single(
// CHECK: dist.all_to_all
// CHECK-NOT: dist.{{all|permute}}
// CHECK: return
func.func @beside_single(%x: tensor<1x3x16x8xf32, #S2>, %w: tensor<64x3x3x3xf32, #R>, %v: tensor<64x64x3x3xf32, #R>, %u: tensor<64x64x1x1xf32, #R>)
    -> tensor<1x64x16x8xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S2>, tensor<64x3x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %1 = aten.convolution %0, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<64x64x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %2 = aten.convolution %0, %u stride [1, 1] padding [0, 0] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<64x64x1x1xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %3 = aten.add %1, %2 : (tensor<1x64x16x8xf32, #S2>, tensor<1x64x16x8xf32, #S2>) -> tensor<1x64x16x8xf32, #S2>
  return %3 : tensor<1x64x16x8xf32, #S2>
}

// As many channels: rows would be no fewer, and are fetched.
// CHECK-LABEL: func.func @alike(
// CHECK-COUNT-2: dist.{{all_to_all|permute}}
// CHECK: return
func.func @alike(%x: tensor<1x8x16x8xf32, #S2>, %w: tensor<8x8x3x3xf32, #R>, %v: tensor<8x8x3x3xf32, #R>) -> tensor<1x8x16x8xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x8x16x8xf32, #S2>, tensor<8x8x3x3xf32, #R>) -> tensor<1x8x16x8xf32, #S2>
  %1 = aten.convolution %0, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x8x16x8xf32, #S2>, tensor<8x8x3x3xf32, #R>) -> tensor<1x8x16x8xf32, #S2>
  return %1 : tensor<1x8x16x8xf32, #S2>
}

// So much to compute for a row takes longer than to fetch it.
// CHECK-LABEL: func.func @costly(
// CHECK-COUNT-2: dist.{{all_to_all|permute}}
// CHECK: return
func.func @costly(%x: tensor<1x64x16x8xf32, #S2>, %w: tensor<128x64x3x3xf32, #R>, %v: tensor<128x128x3x3xf32, #R>) -> tensor<1x128x16x8xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<128x64x3x3xf32, #R>) -> tensor<1x128x16x8xf32, #S2>
  %1 = aten.convolution %0, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x128x16x8xf32, #S2>, tensor<128x128x3x3xf32, #R>) -> tensor<1x128x16x8xf32, #S2>
  return %1 : tensor<1x128x16x8xf32, #S2>
}

// Corners would need rows and columns of the first image: both are fetched.
// CHECK-LABEL: func.func @corners(
// CHECK-COUNT-4: dist.{{all_to_all|permute}}
// CHECK: return
func.func @corners(%x: tensor<1x3x16x8xf32, #S23>, %w: tensor<64x3x3x3xf32, #Rsquare>, %v: tensor<64x64x3x3xf32, #Rsquare>)
    -> tensor<1x64x16x8xf32, #S23> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S23>, tensor<64x3x3x3xf32, #Rsquare>) -> tensor<1x64x16x8xf32, #S23>
  %1 = aten.convolution %0, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S23>, tensor<64x64x3x3xf32, #Rsquare>) -> tensor<1x64x16x8xf32, #S23>
  return %1 : tensor<1x64x16x8xf32, #S23>
}

// What a triangle keeps of a row goes by where that lies in the whole image.
// CHECK-LABEL: func.func @triangle(
// CHECK-COUNT-2: dist.{{all_to_all|permute}}
// CHECK: return
func.func @triangle(%x: tensor<1x3x16x8xf32, #S2>, %w: tensor<64x3x3x3xf32, #R>, %v: tensor<64x64x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x3x16x8xf32, #S2>, tensor<64x3x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  %1 = aten.tril %0 : (tensor<1x64x16x8xf32, #S2>) -> tensor<1x64x16x8xf32, #S2>
  %2 = aten.convolution %1, %v stride [1, 1] padding [1, 1] dilation [1, 1]
      : (tensor<1x64x16x8xf32, #S2>, tensor<64x64x3x3xf32, #R>) -> tensor<1x64x16x8xf32, #S2>
  return %2 : tensor<1x64x16x8xf32, #S2>
}
