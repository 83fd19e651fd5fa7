// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of a dim that lie near each other, or at the two ends of a ring: one exchange for all that an op needs of others.
// RUN: shard-opt --dist-localize --canonicalize --cse %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>

// Of nine rows, ranks hold [0, 5) and [5, 9). Rank 0 lacks row 5 of the first slice, rank 1 row 4 of the last: one exchange
// for all of them, of one row each way.
// CHECK-LABEL: func.func @second_difference
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @second_difference(%x: tensor<9x3xf32, #S0>) -> tensor<7x3xf32, #S0> {
  %a = aten.slice %x dim 0 [2 : 9 : 1] : (tensor<9x3xf32, #S0>) -> tensor<7x3xf32, #S0>
  %b = aten.slice %x dim 0 [1 : 8 : 1] : (tensor<9x3xf32, #S0>) -> tensor<7x3xf32, #S0>
  %c = aten.slice %x dim 0 [0 : 7 : 1] : (tensor<9x3xf32, #S0>) -> tensor<7x3xf32, #S0>
  %ac = aten.add %a, %c : (tensor<7x3xf32, #S0>, tensor<7x3xf32, #S0>) -> tensor<7x3xf32, #S0>
  %y = aten.sub %ac, %b : (tensor<7x3xf32, #S0>, tensor<7x3xf32, #S0>) -> tensor<7x3xf32, #S0>
  return %y : tensor<7x3xf32, #S0>
}

// Differences of a ring of elements: where all that needs the joined elements looks at what they are made of, what its
// slices lack comes straight from the ends of the ring, in one exchange.
// CHECK-LABEL: func.func @ring_difference
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: return
func.func @ring_difference(%x: tensor<8xf32, #S0>) -> tensor<8xf32, #S0> {
  %0 = aten.slice %x dim 0 [7 : 8 : 1] : (tensor<8xf32, #S0>) -> tensor<1xf32, #S0>
  %1 = aten.slice %x dim 0 [0 : 1 : 1] : (tensor<8xf32, #S0>) -> tensor<1xf32, #S0>
  %2 = aten.cat %0, %x, %1 dim 0 : (tensor<1xf32, #S0>, tensor<8xf32, #S0>, tensor<1xf32, #S0>) -> tensor<10xf32, #S0>
  %3 = aten.slice %2 dim 0 [2 : 10 : 1] : (tensor<10xf32, #S0>) -> tensor<8xf32, #S0>
  %4 = aten.slice %2 dim 0 [0 : 8 : 1] : (tensor<10xf32, #S0>) -> tensor<8xf32, #S0>
  %5 = aten.sub %3, %4 : (tensor<8xf32, #S0>, tensor<8xf32, #S0>) -> tensor<8xf32, #S0>
  return %5 : tensor<8xf32, #S0>
}

// A roll by one: both slices and their join are one exchange, of one element from each rank to the other.
// CHECK-LABEL: func.func @rolled
// CHECK: dist.all_to_all over #tp {{.*}} : tensor<1xf32>
// CHECK-NOT: dist.all
// CHECK: return
func.func @rolled(%x: tensor<12xf32, #S0>) -> tensor<12xf32, #S0> {
  %last = aten.slice %x dim 0 [11 : 12 : 1] : (tensor<12xf32, #S0>) -> tensor<1xf32, #S0>
  %rest = aten.slice %x dim 0 [0 : 11 : 1] : (tensor<12xf32, #S0>) -> tensor<11xf32, #S0>
  %y = aten.cat %last, %rest dim 0 : (tensor<1xf32, #S0>, tensor<11xf32, #S0>) -> tensor<12xf32, #S0>
  return %y : tensor<12xf32, #S0>
}
