// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: rm -rf %t && split-file %s %t
// RUN: shard-opt --dist-assume-sizes %t/program.mlir | FileCheck %s --check-prefix=TYPICAL
// RUN: shard-opt --dist-assume-sizes="sizes=n=7,m=300" %t/program.mlir | FileCheck %s --check-prefix=GIVEN
// RUN: shard-opt --dist-assume-sizes="sizes=m=300 largest" %t/program.mlir | FileCheck %s --check-prefix=LARGEST
// A value that was noted stays, but for one that is given.
// RUN: shard-opt --dist-assume-sizes=sizes=n=7,m=300 --dist-assume-sizes=sizes=m=400 %t/program.mlir | FileCheck %s --check-prefix=AGAIN
// The values are what dist-specialize binds for estimates, and the program is unchanged otherwise.
// RUN: shard-opt --dist-assume-sizes=sizes=n=7,m=300 --dist-specialize=bind-typical %t/program.mlir | FileCheck %s --check-prefix=BOUND
// RUN: not shard-opt --dist-assume-sizes=largest %t/program.mlir 2>&1 | FileCheck %s --check-prefix=UNBOUNDED
// RUN: not shard-opt --dist-assume-sizes=sizes=n=65,k=2 %t/program.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: shard-opt --dist-assume-sizes %t/static.mlir | FileCheck %s --check-prefix=STATIC
// RUN: not shard-opt %t/text.mlir 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: not shard-opt %t/function.mlir 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE

// 64 is the largest value of n; m has none, and 128 is typical.
// TYPICAL: dist.assumed_sizes = {m = 128 : i64, n = 64 : i64}
// TYPICAL: func.func @forward(%arg0: tensor<?x?xf32>
// GIVEN: dist.assumed_sizes = {m = 300 : i64, n = 7 : i64}
// LARGEST: dist.assumed_sizes = {m = 300 : i64, n = 64 : i64}
// AGAIN: dist.assumed_sizes = {m = 400 : i64, n = 7 : i64}
// BOUND: func.func @forward(%arg0: tensor<7x300xf32>
// UNBOUNDED: error: --memory-limit: the dynamic size m (dim 1 of x) has no upper bound, {{.*}}--size m=VALUE
// WRONG: error: 65 is outside the range of #dist.symbol<n in [1, 64]>
// WRONG: error: no symbol is named 'k'; there are n, m
// STATIC-NOT: assumed_sizes
// ATTRIBUTE: 'dist.assumed_sizes' must be a module's dictionary of numbers (i64) by the names of symbols

//--- program.mlir
#mesh = #dist.mesh<["tp" = 1]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<?x?xf32> {dist.name = "x", dist.global_type = tensor<?x?xf32>, dist.layout = #R,
                                          dist.sizes = [#dist.size<n>, #dist.size<m>]})
      -> (tensor<?x?xf32> {dist.global_type = tensor<?x?xf32>, dist.layout = #R, dist.sizes = [#dist.size<n>, #dist.size<m>]})
      attributes {dist.symbols = [#dist.symbol<n in [1, 64]>, #dist.symbol<m in [2, ?]>]} {
    %1 = aten.relu %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
    return %1 : tensor<?x?xf32>
  }
}

//--- static.mlir
func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

//--- text.mlir
module attributes {dist.assumed_sizes = {n = "many"}} {
}

//--- function.mlir
func.func @forward() attributes {dist.assumed_sizes = {n = 3 : i64}} {
  return
}
