// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse %s | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0), R]>
#S01 = #dist.layout<#mesh, [S(0), S(1)]>
#both = #dist.layout<#mesh, [S(1), S(1)]>
#rows = #dist.layout<#mesh, [S(0), R]>

// Two numbers a row are reduced over tp, and nothing is gathered.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[MAX:.*]] = aten.amax %arg0 dim [1] keepdim : (tensor<4x5xf32>) -> tensor<4x1xf32>
// CHECK: %[[M:.*]] = dist.all_reduce max over #tp %[[MAX]] : tensor<4x1xf32>
// CHECK: %[[C:.*]] = aten.sub %arg0, %[[M]]
// CHECK: %[[E:.*]] = aten.exp %[[C]]
// CHECK: %[[SUM:.*]] = aten.sum %[[E]] dim [1] keepdim to f32 : (tensor<4x5xf32>) -> tensor<4x1xf32>
// CHECK: %[[S:.*]] = dist.all_reduce sum over #tp %[[SUM]] : tensor<4x1xf32>
// CHECK: %[[Y:.*]] = aten.div %[[E]], %[[S]]
// CHECK: return %[[Y]]
// CHECK-NOT: dist.all_gather
func.func @softmax(%x: tensor<8x10xf32, #S01>) -> tensor<8x10xf32, #S01> {
  %y = aten.softmax %x dim 1 : (tensor<8x10xf32, #S01>) -> tensor<8x10xf32, #S01>
  return %y : tensor<8x10xf32, #S01>
}

// Short floats are summed in f32. A dim over both axes is reduced over both at once.
// CHECK-LABEL: func.func @log_softmax
// CHECK: aten.to_copy %arg0 to f32
// CHECK: dist.all_reduce max over #dp_tp %{{.*}} : tensor<8x1xf32>
// CHECK: dist.all_reduce sum over #dp_tp %{{.*}} : tensor<8x1xf32>
// CHECK: aten.log
// CHECK: aten.to_copy %{{.*}} to bf16
func.func @log_softmax(%x: tensor<8x10xbf16, #both>) -> tensor<8x10xbf16, #both> {
  %y = aten.log_softmax %x dim 1 : (tensor<8x10xbf16, #both>) -> tensor<8x10xbf16, #both>
  return %y : tensor<8x10xbf16, #both>
}

// Over a dim that is whole it is the op itself.
// CHECK-LABEL: func.func @whole_rows
// CHECK-NEXT: aten.softmax %arg0 dim 1 : (tensor<4x10xf32>) -> tensor<4x10xf32>
// CHECK-NEXT: return
func.func @whole_rows(%x: tensor<8x10xf32, #S0>) -> tensor<8x10xf32, #S0> {
  %y = aten.softmax %x dim 1 : (tensor<8x10xf32, #S0>) -> tensor<8x10xf32, #S0>
  return %y : tensor<8x10xf32, #S0>
}

// CHECK-LABEL: func.func @logsumexp
// CHECK: dist.all_reduce max over #tp
// CHECK: aten.isinf
// CHECK: dist.all_reduce sum over #tp
// CHECK: aten.log
// CHECK: aten.view %{{.*}} [4] : (tensor<4x1xf32>) -> tensor<4xf32>
func.func @logsumexp(%x: tensor<8x10xf32, #S01>) -> tensor<8xf32, #rows> {
  %y = aten.logsumexp %x dim [1] : (tensor<8x10xf32, #S01>) -> tensor<8xf32, #rows>
  return %y : tensor<8xf32, #rows>
}
