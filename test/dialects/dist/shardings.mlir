// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --emit-bytecode | shard-opt | FileCheck %s

// Every word of the text form, and what is left out where it says nothing: `given` of R and P, the level that is the
// number of the axis, the words in any order.
#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK: dist.sharding = #dist.sharding<#mesh, [S(0), ?]>
  func.func @wish(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<#mesh, [S(0), ?]>}) { return }
  // CHECK: dist.sharding = #dist.sharding<#mesh, [R, P(max) weak]>
  func.func @bound(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<#mesh, [R given, P(max) weak]>}) { return }
  // CHECK: dist.sharding = #dist.sharding<#mesh, [S(0) given weak storage level 1, S(0) given pinned level 0]>
  func.func @words(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<#mesh, [S(0) level 1 storage weak given, S(0) pinned given level 0]>}) { return }
  // CHECK: dist.sharding = #dist.sharding<#mesh, [S(1, blocks = 3) fixed, S(0, granule = 2)]>
  func.func @extents(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<#mesh, [S(1, blocks = 3) fixed level 0, S(0, granule = 2) level 1]>}) { return }
  // CHECK: dist.sharding = #dist.sharding<#mesh, [?, S(0, sizes = [5, 0, 2, 1]) fixed]>
  func.func @sizes(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<#mesh, [?, S(0, sizes = [5, 0, 2, 1]) fixed]>}) { return }
  // Several results, several entries; and a result of a function.
  // CHECK: func.func @results(%{{.*}}) -> (tensor<8x3xf32> {dist.sharding = #sharding_S0tp_given}
  // CHECK: {dist.sharding = [#sharding_S0tp, #sharding_open]}
  func.func @results(%x: tensor<8x6xf32>) -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<#mesh, [?, S(0) given]>}) {
    %0:2 = "aten.split_with_sizes"(%x) <{dim = 1 : i64, static_split_sizes = array<i64: 3, 3>}> {dist.sharding = [#dist.sharding<#mesh, [?, S(0)]>, #dist.sharding<#mesh, [?, ?]>]} : (tensor<8x6xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
    return %0#0 : tensor<8x3xf32>
  }
}
