// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse %s | FileCheck %s

#mesh = #dist.mesh<["h" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#S4 = #dist.layout<#mesh, [S(4)]>

// What a rank lacks comes in one all-to-all; of a rank's own rows none is sent to itself.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[OTHERS:.*]] = dist.extent #dist.extents<table [0, 1] over #mesh>
// CHECK: dist.all_to_all over #h {{.*}} : tensor<?xf32>
// CHECK-NOT: dist.all
// The padding of the whole image is in what the rank has.
// CHECK: aten.cat {{.*}} dim 2
// CHECK: aten.convolution {{.*}} stride [1, 1] padding [0, 1] dilation [1, 1]
// CHECK: return
func.func @convolution(%x: tensor<1x2x?x8xf32, #S2> {dist.sizes = [#dist.size<1>, #dist.size<2>, #dist.size<n>, #dist.size<8>]},
                       %w: tensor<3x2x3x3xf32, #R>) -> tensor<1x3x?x8xf32, #S2>
    attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %y = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1]
    : (tensor<1x2x?x8xf32, #S2>, tensor<3x2x3x3xf32, #R>) -> tensor<1x3x?x8xf32, #S2>
  return %y : tensor<1x3x?x8xf32, #S2>
}

// What windows add to rows of other ranks goes there, and is added to what they have.
// CHECK-LABEL: func.func @fold
// CHECK: aten.fold
// CHECK: dist.all_to_all
// CHECK: aten.index_put {{.*}} accumulate
// CHECK: return
func.func @fold(%x: tensor<1x2x3x1x?x8xf32, #S4> {dist.sizes = [#dist.size<1>, #dist.size<2>, #dist.size<3>, #dist.size<1>, #dist.size<n>, #dist.size<8>]})
    -> tensor<1x2x?x8xf32, #S2> attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %n = aten.sym_size %x dim 4 : (tensor<1x2x3x1x?x8xf32, #S4>) -> index
  %y = aten.fold %x to [%n, 8] stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x3x1x?x8xf32, #S4>) -> tensor<1x2x?x8xf32, #S2>
  return %y : tensor<1x2x?x8xf32, #S2>
}

// A difference of neighbours: each of the slices fetches what its part begins or ends with.
// CHECK-LABEL: func.func @difference
// CHECK-COUNT-2: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: aten.sub
func.func @difference(%x: tensor<?xf32, #S0> {dist.sizes = [#dist.size<n>]}) -> tensor<?xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [8, 64]>]} {
  %a = aten.slice %x dim 0 [1 : 9223372036854775807 : 1] : (tensor<?xf32, #S0>) -> tensor<?xf32, #S0>
  %b = aten.slice %x dim 0 [0 : -1 : 1] : (tensor<?xf32, #S0>) -> tensor<?xf32, #S0>
  %y = aten.sub %a, %b : (tensor<?xf32, #S0>, tensor<?xf32, #S0>) -> tensor<?xf32, #S0>
  return %y : tensor<?xf32, #S0>
}

// The first elements of a dim, shared out among all ranks.
// CHECK-LABEL: func.func @first
// CHECK: dist.all_to_all
// CHECK: return {{.*}} : tensor<2xf32>
func.func @first(%x: tensor<?xf32, #S0> {dist.sizes = [#dist.size<n>]}) -> tensor<4xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [8, 64]>]} {
  %y = aten.slice %x dim 0 [0 : 4 : 1] : (tensor<?xf32, #S0>) -> tensor<4xf32, #S0>
  return %y : tensor<4xf32, #S0>
}

// CHECK-LABEL: func.func @reversed
// CHECK: dist.all_to_all
// CHECK: aten.flip
func.func @reversed(%x: tensor<?xf32, #S0> {dist.sizes = [#dist.size<n>]}) -> tensor<?xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [8, 64]>]} {
  %y = aten.flip %x [0] : (tensor<?xf32, #S0>) -> tensor<?xf32, #S0>
  return %y : tensor<?xf32, #S0>
}

// Of two tensors each gives its part of the whole: what the others say of its size is no symbol, but is computed.
// CHECK-LABEL: func.func @joined
// CHECK-COUNT-2: dist.all_to_all
// CHECK: aten.cat
// CHECK: return
func.func @joined(%x: tensor<?xf32, #S0> {dist.sizes = [#dist.size<n>]}, %y: tensor<?xf32, #S0> {dist.sizes = [#dist.size<m>]})
    -> tensor<?xf32, #S0> attributes {dist.symbols = [#dist.symbol<m in [0, 64]>, #dist.symbol<n in [8, 64]>]} {
  %z = aten.cat %x, %y dim 0 : (tensor<?xf32, #S0>, tensor<?xf32, #S0>) -> tensor<?xf32, #S0>
  return %z : tensor<?xf32, #S0>
}

// A pair of windows for each two elements: one expression, whichever way it was computed.
// CHECK-LABEL: func.func @half
// CHECK: dist.extent #dist.extents<n + 2>
func.func @half(%x: tensor<1x2x?x8xf32, #R> {dist.sizes = [#dist.size<1>, #dist.size<2>, #dist.size<n * 2 + 4>, #dist.size<8>]})
    -> tensor<1x2x?x4xf32, #S2> attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %y = aten.max_pool %x kernel [2, 2] stride [2, 2] padding [0, 0] dilation [1, 1] : (tensor<1x2x?x8xf32, #R>) -> tensor<1x2x?x4xf32, #R>
  %z = dist.redistribute %y by slice : tensor<1x2x?x4xf32, #R> to tensor<1x2x?x4xf32, #S2>
  return %z : tensor<1x2x?x4xf32, #S2>
}

// A split into parts of symbolic size: each is cut where it begins, and fetches what it lacks.
// CHECK-LABEL: func.func @split
// CHECK-COUNT-2: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @split(%x: tensor<?x3xf32, #S0> {dist.sizes = [#dist.size<2 * n>, #dist.size<3>]}) -> (tensor<?x3xf32, #S0>, tensor<?x3xf32, #S0>)
    attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %two = arith.constant 2 : index
  %n = aten.sym_size %x dim 0 : (tensor<?x3xf32, #S0>) -> index
  %half = arith.divsi %n, %two : index
  %a:2 = aten.split_with_sizes %x [%half, %half] dim 0 : (tensor<?x3xf32, #S0>) -> (tensor<?x3xf32, #S0>, tensor<?x3xf32, #S0>)
  return %a#0, %a#1 : tensor<?x3xf32, #S0>, tensor<?x3xf32, #S0>
}

// An adaptive mean: sums of parts that a border cuts go to their owners.
// CHECK-LABEL: func.func @parts
// CHECK: aten.sum
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: aten.div
// CHECK: return
func.func @parts(%x: tensor<1x2x?x8xf32, #S2> {dist.sizes = [#dist.size<1>, #dist.size<2>, #dist.size<n>, #dist.size<8>]}) -> tensor<1x2x3x4xf32, #S2>
    attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %y = aten.adaptive_avg_pool %x to [3, 4] : (tensor<1x2x?x8xf32, #S2>) -> tensor<1x2x3x4xf32, #S2>
  return %y : tensor<1x2x3x4xf32, #S2>
}
