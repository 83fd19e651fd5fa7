// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-propagate --dist-place

// Everything is said at once.
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#other = #dist.layout<#dist.mesh<["dp" = 2]>, [R]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{has a layout on the mesh ["dp" = 2], which is not the module's 'dist.mesh'}}
  func.func @f(%g: tensor<8xf32>, %y: tensor<8xf32, #R>, %z: tensor<8xf32, #other>) -> tensor<8xf32> {
    // expected-error @+1 {{'aten.add' op has results with a layout, but operand 0 has none: only dist.redistribute starts from what is still to be placed}}
    %0 = aten.add %g, %y : (tensor<8xf32>, tensor<8xf32, #R>) -> tensor<8xf32, #R>
    return %g : tensor<8xf32>
  }
}

// -----

// What is given to a result binds here as well.
#mesh = #dist.mesh<["tp" = 4]>
#S0 = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
  func.func @g(%y: tensor<8xf32, #S0>) -> tensor<8xf32> {
    // expected-error @+1 {{result 0 is to be P(sum) over tp, but the op cannot make it so from what its operands are}}
    %0 = aten.relu %y {dist.sharding = [#dist.sharding<#mesh, [P(sum)]>]} : (tensor<8xf32, #S0>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// What is to be placed is on the mesh of the program.
#mesh = #dist.mesh<["tp" = 2]>
#readers = #dist.mesh<["io" = 2], devices = [4, 5]>
#R = #dist.layout<#readers, [R]>
module attributes {dist.mesh = #mesh, dist.meshes = {readers = #readers}} {
  func.func @elsewhere(%x: tensor<8xf32, #R>) -> tensor<8xf32> {
    // expected-error @+1 {{'aten.relu' op is placed on the module's 'dist.mesh', but operand 0 is on the mesh ["io" = 2], devices = [4, 5]; redistribute it first}}
    %y = aten.relu %x : (tensor<8xf32, #R>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
