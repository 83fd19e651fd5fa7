// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --split-input-file --verify-diagnostics %s

// What is no placed program.

// expected-error @+1 {{argument 0 has a tensor without layout, 'tensor<8xf32>'; place the program first (--shardc-place)}}
func.func @imported(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has a tensor without layout, 'tensor<8xf32>'; place the program first (--shardc-place)}}
  %y = aten.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// expected-error @+1 {{has control flow, which has no local form}}
func.func @control_flow(%n: index) -> index {
  cf.br ^next
^next:
  return %n : index
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>

func.func @unknown(%x: tensor<8xf32, #S0>) -> tensor<8xf32, #S0> {
  // expected-error @+1 {{cannot be localised: it has no local form (LocalizableOpInterface)}}
  %y = tensor.cast %x : tensor<8xf32, #S0> to tensor<8xf32, #S0>
  return %y : tensor<8xf32, #S0>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>

func.func @regions(%x: tensor<8xf32, #S0>) -> tensor<8xf32, #S0> {
  // expected-error @+1 {{has regions, which have no local form}}
  %y = "linalg.generic"(%x) <{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32):
    linalg.yield %a : f32
  }) : (tensor<8xf32, #S0>) -> tensor<8xf32, #S0>
  return %y : tensor<8xf32, #S0>
}

// -----

// An open layout is no type of a placed program at all.

#mesh = #dist.mesh<["tp" = 2]>
#O = #dist.layout<#mesh, [?]>

// expected-error @+1 {{axis "tp": the placement is open, expected R, S or P}}
func.func @open(%x: tensor<8xf32, #O>) -> tensor<8xf32, #O> {
  return %x : tensor<8xf32, #O>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#Pprod = #dist.layout<#mesh, [P(prod)]>
#Pmax = #dist.layout<#mesh, [P(max)]>

func.func @steps(%x: tensor<8xf32, #R>, %y: tensor<8xf32, #S0>) -> (tensor<8xf32, #Pprod>, tensor<8xf32, #Pmax>) {
  // expected-error @+1 {{a value cannot be turned into factors of a product}}
  %0 = dist.redistribute %x by to_partial : tensor<8xf32, #R> to tensor<8xf32, #Pprod>
  // expected-error @+1 {{operands [S(0)], results [P(max)]: no step is chosen; run --dist-plan-redistributions first}}
  %1 = dist.redistribute %y : tensor<8xf32, #S0> to tensor<8xf32, #Pmax>
  return %0, %1 : tensor<8xf32, #Pprod>, tensor<8xf32, #Pmax>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#other = #dist.layout<#dist.mesh<["io" = 2], devices = [2, 3]>, [R]>

module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{argument 0 has a tensor on the mesh ["io" = 2], devices = [2, 3], which is not the module's 'dist.mesh', nor one of its 'dist.meshes'}}
  func.func @unknown_mesh(%x: tensor<8xf32, #other>) -> tensor<8xf32, #other> {
    return %x : tensor<8xf32, #other>
  }
}
