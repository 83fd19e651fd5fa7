// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows at borders of which ranks send sums, where these are less than the elements. (What they compute is compared with PyTorch
// in test/e2e/window_cases.py.)
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse %s | FileCheck %s

#mesh = #dist.mesh<["h" = 2]>
#R = #dist.layout<#mesh, [R]>
#S2 = #dist.layout<#mesh, [S(2)]>
#S2uneven = #dist.layout<#mesh, [S(2, sizes = [7, 2])]>
#three = #dist.mesh<["h" = 3]>
#Rthree = #dist.layout<#three, [R]>
#image = #dist.layout<#three, [S(2, sizes = [1, 2, 9])]>
#ends = #dist.layout<#three, [S(2, sizes = [2, 0, 2])]>
#square = #dist.mesh<["h" = 2, "w" = 2]>
#Rsquare = #dist.layout<#square, [R, R]>
#S23 = #dist.layout<#square, [S(2), S(3)]>

// From 6 channels to one: of each border one row of 4 sums goes each way, and the convolutions of a rank's own positions wait for
// nothing. What comes is added to the rows at the ends, which are made apart from the others. The bias is added once, to the sum.
// CHECK-LABEL: func.func @fewer_channels(
// CHECK: %[[BEFORE:.*]] = aten.convolution {{.*}} : (tensor<1x6x?x4xf32>, tensor<1x6x3x1xf32>) -> tensor<1x1x?x4xf32>
// CHECK: %[[BEHIND:.*]] = aten.convolution {{.*}} : (tensor<1x6x?x4xf32>, tensor<1x6x3x1xf32>) -> tensor<1x1x?x4xf32>
// CHECK: %[[FRONT:.*]] = aten.convolution {{.*}} : (tensor<1x6x?x4xf32>, tensor<1x6x3x1xf32>) -> tensor<1x1x?x4xf32>
// CHECK: %[[MIDDLE:.*]] = aten.convolution {{.*}} : (tensor<1x6x5x4xf32>, tensor<1x6x3x1xf32>) -> tensor<1x1x3x4xf32>
// CHECK: %[[BACK:.*]] = aten.convolution {{.*}} : (tensor<1x6x?x4xf32>, tensor<1x6x3x1xf32>) -> tensor<1x1x?x4xf32>
// CHECK: %[[PARTS:.*]] = aten.cat %[[BEFORE]], %[[BEHIND]] dim 2
// CHECK: dist.permute over #h {{.*}} %[[PARTS]] : tensor<1x1x1x4xf32>
// CHECK: %[[FIRST:.*]] = aten.add %[[FRONT]], {{.*}} : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
// CHECK: %[[LAST:.*]] = aten.add %[[BACK]], {{.*}} : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
// CHECK: %[[SUM:.*]] = aten.cat %[[FIRST]], %[[MIDDLE]], %[[LAST]] dim 2
// CHECK: aten.add %[[SUM]], {{.*}} : (tensor<1x1x4x4xf32>, tensor<1x1x1xf32>)
// CHECK: return
func.func @fewer_channels(%x: tensor<1x6x8x4xf32, #S2>, %w: tensor<1x6x3x1xf32, #R>, %b: tensor<1xf32, #R>) -> tensor<1x1x8x4xf32, #S2> {
  %0 = aten.convolution %x, %w bias(%b) stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x6x8x4xf32, #S2>, tensor<1x6x3x1xf32, #R>, tensor<1xf32, #R>) -> tensor<1x1x8x4xf32, #S2>
  return %0 : tensor<1x1x8x4xf32, #S2>
}

// The second rank makes what it can of the mean that its border cuts.
// CHECK-LABEL: func.func @means(
// CHECK-COUNT-2: aten.avg_pool
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @means(%x: tensor<1x2x10x4xf32, #S2>) -> tensor<1x2x3x4xf32, #S2> {
  %0 = aten.avg_pool %x kernel [5, 1] stride [3, 1] padding [1, 0] : (tensor<1x2x10x4xf32, #S2>) -> tensor<1x2x3x4xf32, #S2>
  return %0 : tensor<1x2x3x4xf32, #S2>
}

// The largest of each part, of shards of any sizes.
// CHECK-LABEL: func.func @largest(
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: aten.maximum
// CHECK: return
func.func @largest(%x: tensor<1x2x9x4xf32, #S2uneven>) -> tensor<1x2x3x4xf32, #S2> {
  %0 = aten.max_pool %x kernel [4, 1] stride [3, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x9x4xf32, #S2uneven>) -> tensor<1x2x3x4xf32, #S2>
  return %0 : tensor<1x2x3x4xf32, #S2>
}

// Sums of shorter floats would be rounded once more: elements are fetched.
// CHECK-LABEL: func.func @half(
// CHECK: dist.all_to_all {{.*}} : tensor<24xbf16>
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @half(%x: tensor<1x6x8x4xbf16, #S2>, %w: tensor<1x6x3x1xbf16, #R>) -> tensor<1x1x8x4xbf16, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x6x8x4xbf16, #S2>, tensor<1x6x3x1xbf16, #R>) -> tensor<1x1x8x4xbf16, #S2>
  return %0 : tensor<1x1x8x4xbf16, #S2>
}

// A largest element is the same in any type.
// CHECK-LABEL: func.func @largest_half(
// CHECK: dist.all_to_all
// CHECK: aten.maximum {{.*}}bf16
func.func @largest_half(%x: tensor<1x2x9x4xbf16, #S2uneven>) -> tensor<1x2x3x4xbf16, #S2> {
  %0 = aten.max_pool %x kernel [4, 1] stride [3, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x9x4xbf16, #S2uneven>) -> tensor<1x2x3x4xbf16, #S2>
  return %0 : tensor<1x2x3x4xbf16, #S2>
}

// What another window fetches serves both.
// CHECK-LABEL: func.func @beside(
// CHECK: dist.all_to_all {{.*}} : tensor<24xf32>
// CHECK-NOT: dist.{{all|permute}}
// CHECK: return
func.func @beside(%x: tensor<1x6x8x4xf32, #S2>, %w: tensor<1x6x3x1xf32, #R>) -> (tensor<1x1x8x4xf32, #S2>, tensor<1x6x8x4xf32, #S2>) {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x6x8x4xf32, #S2>, tensor<1x6x3x1xf32, #R>) -> tensor<1x1x8x4xf32, #S2>
  %1 = aten.max_pool %x kernel [3, 1] stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x6x8x4xf32, #S2>) -> tensor<1x6x8x4xf32, #S2>
  return %0, %1 : tensor<1x1x8x4xf32, #S2>, tensor<1x6x8x4xf32, #S2>
}

// Along two dims: a quarter of what the elements would be.
// CHECK-LABEL: func.func @corners(
// CHECK-COUNT-2: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @corners(%x: tensor<1x2x16x16xf32, #S23>) -> tensor<1x2x8x8xf32, #S23> {
  %0 = aten.avg_pool %x kernel [3, 3] stride [2, 2] padding [1, 1] : (tensor<1x2x16x16xf32, #S23>) -> tensor<1x2x8x8xf32, #S23>
  return %0 : tensor<1x2x8x8xf32, #S23>
}

// The corners alone are not worth it.
// CHECK-LABEL: func.func @square(
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @square(%x: tensor<1x2x16x16xf32, #S23>, %w: tensor<2x2x3x3xf32, #Rsquare>) -> tensor<1x2x16x16xf32, #S23> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x16x16xf32, #S23>, tensor<2x2x3x3xf32, #Rsquare>) -> tensor<1x2x16x16xf32, #S23>
  return %0 : tensor<1x2x16x16xf32, #S23>
}

// Windows that skip elements: what lies between them moves in neither form.
// CHECK-LABEL: func.func @gaps(
// CHECK-NOT: dist.all
// CHECK: return
func.func @gaps(%x: tensor<1x2x11x4xf32, #S2>) -> tensor<1x2x4x4xf32, #S2> {
  %0 = aten.avg_pool %x kernel [2, 1] stride [3, 1] padding [0, 0] : (tensor<1x2x11x4xf32, #S2>) -> tensor<1x2x4x4xf32, #S2>
  return %0 : tensor<1x2x4x4xf32, #S2>
}

// Of a large image, two more copies take longer than the row that parts would save.
// CHECK-LABEL: func.func @large(
// CHECK: dist.{{all_to_all|permute}}
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @large(%x: tensor<1x16x512x512xf32, #S2>, %w: tensor<8x16x3x3xf32, #R>) -> tensor<1x8x512x512xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x16x512x512xf32, #S2>, tensor<8x16x3x3xf32, #R>) -> tensor<1x8x512x512xf32, #S2>
  return %0 : tensor<1x8x512x512xf32, #S2>
}

// The second rank has elements between the first rank's windows, but none under them, so there is nothing that it could send.
// CHECK-LABEL: func.func @between_windows(
// CHECK: dist.{{all_to_all|permute}}
// CHECK-NOT: dist.{{all|permute}}
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @between_windows(%x: tensor<1x1x12x4xf32, #image>, %w: tensor<8x1x1x1xf32, #Rthree>) -> tensor<1x8x4x4xf32, #ends> {
  %0 = aten.convolution %x, %w stride [3, 1] padding [0, 0] dilation [1, 1] : (tensor<1x1x12x4xf32, #image>, tensor<8x1x1x1xf32, #Rthree>) -> tensor<1x8x4x4xf32, #ends>
  return %0 : tensor<1x8x4x4xf32, #ends>
}
