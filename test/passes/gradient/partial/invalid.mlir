// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-rewrite-partial-gradients

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>
module attributes {dist.mesh = #mesh} {
  func.func @half(%g: tensor<8xf32, #R>) -> tensor<8xf32> {
    %p = dist.redistribute backward %g : tensor<8xf32, #R> to tensor<8xf32, #P>
    // expected-error @+1 {{'aten.neg' op has a result without a layout: gradients are rewritten in placed programs; run dist-propagate and dist-place first}}
    %n = aten.neg %p : (tensor<8xf32, #P>) -> tensor<8xf32>
    return %n : tensor<8xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>
// expected-error @+1 {{the module has no 'dist.mesh'}}
func.func @no_mesh(%g: tensor<8xf32, #R>) -> tensor<8xf32, #P> {
  %p = dist.redistribute backward %g : tensor<8xf32, #R> to tensor<8xf32, #P>
  return %p : tensor<8xf32, #P>
}

// -----

// Nothing to do is no mistake.
func.func @unplaced(%g: tensor<8xf32>) -> tensor<8xf32> {
  return %g : tensor<8xf32>
}
func.func private @elsewhere(tensor<8xf32>)
