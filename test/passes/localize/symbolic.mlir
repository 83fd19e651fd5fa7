// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#dp0 = #dist.layout<#mesh, [S(0), R]>
#dp0tp2 = #dist.layout<#mesh, [S(0), S(2)]>
#dp0tp1 = #dist.layout<#mesh, [S(0), S(1)]>
#tp1 = #dist.layout<#mesh, [R, S(1)]>

// The batch is chunked over dp when the program runs; a size that is asked for is the global one.
// CHECK-LABEL: func.func @heads
// CHECK-SAME: %[[X:.*]]: tensor<?x?x32xf32>
// CHECK-DAG: %[[B:.*]] = dist.extent #dist.extents<batch over #mesh ["dp"]>
// CHECK-DAG: %[[N:.*]] = dist.extent #dist.extents<seq>
// CHECK: aten.view %[[X]] [%[[B]], %[[N]], 2, 16] : (tensor<?x?x32xf32>) -> tensor<?x?x2x16xf32>
func.func @heads(%x: tensor<?x?x64xf32, #dp0tp2> {dist.sizes = [#dist.size<batch>, #dist.size<seq>, #dist.size<64>]})
    -> tensor<?x?x4x16xf32, #dp0tp2> attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>, #dist.symbol<seq in [2, 512]>]} {
  %b = aten.sym_size %x dim 0 : (tensor<?x?x64xf32, #dp0tp2>) -> index
  %n = aten.sym_size %x dim 1 : (tensor<?x?x64xf32, #dp0tp2>) -> index
  %y = aten.view %x [%b, %n, 4, 16] : (tensor<?x?x64xf32, #dp0tp2>) -> tensor<?x?x4x16xf32, #dp0tp2>
  return %y : tensor<?x?x4x16xf32, #dp0tp2>
}

// Gathers say how much there is in all.
// CHECK-LABEL: func.func @gather
// CHECK: %[[B:.*]] = dist.extent #dist.extents<batch>
// CHECK: dist.all_gather over #dp %{{.*}} dim 0 full %[[B]] : tensor<?x8xf32>
func.func @gather(%x: tensor<?x8xf32, #dp0> {dist.sizes = [#dist.size<batch>, #dist.size<8>]})
    -> tensor<?x8xf32, #R> attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>]} {
  %y = aten.relu %x : (tensor<?x8xf32, #dp0>) -> tensor<?x8xf32, #dp0>
  %z = dist.redistribute %y : tensor<?x8xf32, #dp0> to tensor<?x8xf32, #R>
  return %z : tensor<?x8xf32, #R>
}

// Sizes follow index arithmetic, ops that name sizes, and factors; a slice whose bounds are in range
// for every value of the symbols has the difference.
// CHECK-LABEL: func.func @arithmetic
// CHECK: %[[PAIRS:.*]] = dist.extent #dist.extents<n * 2 - 2 over #mesh ["tp"]>
// CHECK: aten.expand %{{.*}} [8, %[[PAIRS]]] : (tensor<8x1xf32>) -> tensor<8x?xf32>
func.func @arithmetic(%x: tensor<8x1xf32, #R>, %i: tensor<?xi64, #R> {dist.sizes = [#dist.size<n>]})
    -> tensor<8x?xf32, #tp1> attributes {dist.symbols = [#dist.symbol<n in [2, 64]>]} {
  %n = aten.sym_size %i dim 0 : (tensor<?xi64, #R>) -> index
  %c2 = arith.constant 2 : index
  %s = aten.slice %i dim 0 [1 : %n : 1] : (tensor<?xi64, #R>) -> tensor<?xi64, #R>
  %m = aten.sym_size %s dim 0 : (tensor<?xi64, #R>) -> index
  %p = arith.muli %m, %c2 : index
  %y = aten.expand %x [8, %p] : (tensor<8x1xf32, #R>) -> tensor<8x?xf32, #tp1>
  return %y : tensor<8x?xf32, #tp1>
}

// The mean over a symbolic dim divides by its size.
// CHECK-LABEL: func.func @mean
// CHECK: %[[SUM:.*]] = aten.sum %{{.*}} dim [0] to f32 : (tensor<?x8xf32>) -> tensor<8xf32>
// CHECK: %[[B:.*]] = dist.extent #dist.extents<batch>
// CHECK: aten.div %[[SUM]]
func.func @mean(%x: tensor<?x8xf32, #dp0> {dist.sizes = [#dist.size<batch>, #dist.size<8>]})
    -> tensor<8xf32, #dist.layout<#mesh, [P(sum), R]>> attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>]} {
  %y = aten.mean %x dim [0] : (tensor<?x8xf32, #dp0>) -> tensor<8xf32, #dist.layout<#mesh, [P(sum), R]>>
  return %y : tensor<8xf32, #dist.layout<#mesh, [P(sum), R]>>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>

// Nothing says how large the whole is.
func.func @unknown_size(%x: tensor<?x8xf32, #S0>) -> tensor<?x8xf32, #R> {
  // expected-error @+1 {{cannot be localised: the global size of dim 0 of 'tensor<?x8xf32, #dist.layout<#dist.mesh<["dp" = 2]>, [S(0)]>>' is not known; name it in 'dist.sizes' of an argument}}
  %y = dist.redistribute %x : tensor<?x8xf32, #S0> to tensor<?x8xf32, #R>
  return %y : tensor<?x8xf32, #R>
}
