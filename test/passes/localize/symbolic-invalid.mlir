// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --split-input-file --verify-diagnostics %s

// What ranks cannot do with sizes that are known at the run only.

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>

#Blocks = #dist.layout<#mesh, [S(0, blocks = 2)]>

func.func @split(%x: tensor<8xf32, #Blocks>, %n: index, %m: index) -> (tensor<?xf32, #S0>, tensor<?xf32, #S0>) {
  // expected-error @+1 {{along dim 0 a rank would need elements of other ranks; replicate the dim before}}
  %0:2 = aten.split_with_sizes %x [%n, %m] dim 0 : (tensor<8xf32, #Blocks>) -> (tensor<?xf32, #S0>, tensor<?xf32, #S0>)
  return %0#0, %0#1 : tensor<?xf32, #S0>, tensor<?xf32, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>

func.func @position(%x: tensor<8x?xf32, #S0> {dist.sizes = [#dist.size<8>, #dist.size<n>]}) -> tensor<i64, #R>
    attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  // expected-error @+1 {{the position in a flattened tensor of symbolic size}}
  %0 = aten.argmax %x : (tensor<8x?xf32, #S0>) -> tensor<i64, #R>
  return %0 : tensor<i64, #R>
}
