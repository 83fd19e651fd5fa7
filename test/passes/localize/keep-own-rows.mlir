// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-keep-own-rows %s | FileCheck %s
// RUN: shard-opt --dist-keep-own-rows --dist-localize %s | FileCheck %s --check-prefix=LOCAL

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#T0 = #dist.layout<#mesh, [R, S(0)]>
#D0 = #dist.layout<#mesh, [S(0), R]>
#P = #dist.layout<#mesh, [R, P(sum)]>
#Q = #dist.layout<#mesh, [P(sum), R]>

// An expert with a gate and biases: both products, and both lookups, are those of the owners of the same experts.
// CHECK-LABEL: func.func @expert
// CHECK: dist.redistribute {{.*}} by all_reduce {dist.own_rows}
// LOCAL-LABEL: func.func @expert
// LOCAL-NOT: dist.all_reduce
// LOCAL: return
func.func @expert(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %u: tensor<4x8x8xf32, #T0>, %b: tensor<4x8xf32, #T0>, %d: tensor<4x4x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %u at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %c = aten.index %b[%i] : (tensor<4x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %s = aten.add %p, %c : (tensor<6x8xf32, #P>, tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %s by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %g, %h = aten.split_with_sizes %r [4, 4] dim 1 : (tensor<6x8xf32, #R>) -> (tensor<6x4xf32, #R>, tensor<6x4xf32, #R>)
  %a = aten.silu %g : (tensor<6x4xf32, #R>) -> tensor<6x4xf32, #R>
  %m = aten.mul %a, %h : (tensor<6x4xf32, #R>, tensor<6x4xf32, #R>) -> tensor<6x4xf32, #R>
  %y = aten.indexed_mm %m, %d at %i : (tensor<6x4xf32, #R>, tensor<4x4x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}

// What else reads the sum needs all of it: an output, a sum over the rows, rows in another order, a product of another index, and
// one of matrices that other ranks have.
// CHECK-LABEL: func.func @read
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @sum_of_rows
func.func @read(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> (tensor<6x8xf32, #P>, tensor<6x8xf32, #R>) {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %y = aten.indexed_mm %r, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y, %r : tensor<6x8xf32, #P>, tensor<6x8xf32, #R>
}
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @other_order
func.func @sum_of_rows(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %s = aten.softmax %r dim 0 : (tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
  %y = aten.indexed_mm %s, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @other_index
func.func @other_order(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %o: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %s = aten.index_select %r dim 0 at %o : (tensor<6x8xf32, #R>, tensor<6xi64, #R>) -> tensor<6x8xf32, #R>
  %y = aten.indexed_mm %s, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @other_shares
func.func @other_index(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %o: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %y = aten.indexed_mm %r, %w at %o : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @other_sum
func.func @other_shares(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>, %v: tensor<4x8x8xf32, #D0>, %u: tensor<5x8x8xf32, #T0>) -> (tensor<6x8xf32, #Q>, tensor<6x8xf32, #P>) {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %y = aten.indexed_mm %r, %v at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #D0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #Q>
  %q = aten.neg %p : (tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
  %s = dist.redistribute %q by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %z = aten.indexed_mm %s, %u at %i : (tensor<6x8xf32, #R>, tensor<5x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y, %z : tensor<6x8xf32, #Q>, tensor<6x8xf32, #P>
}
// A sum of another kind: of products over a part of what is contracted, or with a partial sum of whatever.
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @through_shards
func.func @other_sum(%x: tensor<6x8xf32, #R>, %o: tensor<6x8xf32, #P>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %s = aten.add %p, %o : (tensor<6x8xf32, #P>, tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %s by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %y = aten.indexed_mm %r, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}
// Cut and gathered again, a row comes from a rank that may not have it.
// CHECK-NOT: dist.own_rows
// CHECK-LABEL: func.func @gradients
func.func @through_shards(%x: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>) -> tensor<6x8xf32, #P> {
  %p = aten.indexed_mm %x, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %s = dist.redistribute %r by slice : tensor<6x8xf32, #R> to tensor<6x8xf32, #T0>
  %a = aten.silu %s : (tensor<6x8xf32, #T0>) -> tensor<6x8xf32, #T0>
  %g = dist.redistribute %a by all_gather : tensor<6x8xf32, #T0> to tensor<6x8xf32, #R>
  %y = aten.indexed_mm %g, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  return %y : tensor<6x8xf32, #P>
}

// The backward: the sums that are gradients of the experts and of their biases pass over rows of others, too.
// CHECK: dist.redistribute {{.*}} by all_reduce {dist.own_rows}
func.func @gradients(%x: tensor<6x8xf32, #R>, %g: tensor<6x8xf32, #R>, %i: tensor<6xi64, #R>, %w: tensor<4x8x8xf32, #T0>, %z: tensor<4x8xf32, #T0>) -> (tensor<6x8xf32, #P>, tensor<4x8x8xf32, #T0>, tensor<4x8xf32, #T0>) {
  %p = aten.indexed_mm %g, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %r = dist.redistribute %p by all_reduce : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
  %m = aten.mul %r, %x : (tensor<6x8xf32, #R>, tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
  %d = aten.indexed_outer %x, %m at %i groups [4] : (tensor<6x8xf32, #R>, tensor<6x8xf32, #R>, tensor<6xi64, #R>) -> tensor<4x8x8xf32, #T0>
  %y = aten.indexed_mm %m, %w at %i : (tensor<6x8xf32, #R>, tensor<4x8x8xf32, #T0>, tensor<6xi64, #R>) -> tensor<6x8xf32, #P>
  %b = aten.index_put %z[%i] of %m accumulate : (tensor<4x8xf32, #T0>, tensor<6xi64, #R>, tensor<6x8xf32, #R>) -> tensor<4x8xf32, #T0>
  return %y, %d, %b : tensor<6x8xf32, #P>, tensor<4x8x8xf32, #T0>, tensor<4x8xf32, #T0>
}
