// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse %s | FileCheck %s

// Lookups along a dim of symbolic size, at computed positions that follow a line: no table is gathered, and no sum has all of it.

#mesh = #dist.mesh<["h" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>

// Twice as many elements: the rows that the part of a rank lacks come in one all-to-all, for both lookups, and positions count from the
// first row that there is.
// CHECK-LABEL: func.func @twice
// CHECK: dist.all_to_all over #h {{.*}} : tensor<?xf32>
// CHECK-NOT: dist.all
// CHECK: %[[ROWS:.*]] = aten.cat
// CHECK: %[[AT:.*]] = aten.sub %{{.*}}, %{{.*}} : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
// CHECK: aten.index_select %[[ROWS]] dim 0 at %[[AT]]
// CHECK: aten.index_select %[[ROWS]] dim 0 at
// CHECK-NOT: dist.all
// CHECK: return
func.func @twice(%x: tensor<?x3xf32, #S0> {dist.sizes = [#dist.size<n>, #dist.size<3>]},
                 %first: tensor<?xi64, #S0> {dist.sizes = [#dist.size<2 * n>]},
                 %second: tensor<?xi64, #S0> {dist.sizes = [#dist.size<2 * n>]}) -> tensor<?x3xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %a = aten.index_select %x dim 0 at %first {aten.lookup_line = {numerator = 1, denominator = 2, half = 1, shift = 1, after = 1}}
    : (tensor<?x3xf32, #S0>, tensor<?xi64, #S0>) -> tensor<?x3xf32, #S0>
  %b = aten.index_select %x dim 0 at %second {aten.lookup_line = {numerator = 1, denominator = 2, half = 1, shift = 1, after = 1}}
    : (tensor<?x3xf32, #S0>, tensor<?xi64, #S0>) -> tensor<?x3xf32, #S0>
  %y = aten.add %a, %b : (tensor<?x3xf32, #S0>, tensor<?x3xf32, #S0>) -> tensor<?x3xf32, #S0>
  return %y : tensor<?x3xf32, #S0>
}

// The adjoint: what a rank adds to rows of others goes there.
// CHECK-LABEL: func.func @added
// CHECK: aten.index_put {{.*}} accumulate
// CHECK: dist.all_to_all
// CHECK-NOT: dist.all
// CHECK: aten.index_put {{.*}} accumulate
// CHECK: aten.add
// CHECK: return
func.func @added(%x: tensor<?x3xf32, #S0> {dist.sizes = [#dist.size<n>, #dist.size<3>]},
                 %at: tensor<?xi64, #S0> {dist.sizes = [#dist.size<2 * n>]},
                 %v: tensor<?x3xf32, #S0> {dist.sizes = [#dist.size<2 * n>, #dist.size<3>]}) -> tensor<?x3xf32, #S0>
    attributes {dist.symbols = [#dist.symbol<n in [4, 64]>]} {
  %y = aten.index_put %x[%at] of %v accumulate {aten.lookup_line = {numerator = 1, denominator = 2}}
    : (tensor<?x3xf32, #S0>, tensor<?xi64, #S0>, tensor<?x3xf32, #S0>) -> tensor<?x3xf32, #S0>
  return %y : tensor<?x3xf32, #S0>
}
