// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=half-placed

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>

// Ops mix operands with a layout and without; a redistribution starts from anything, and ends in anything.
func.func @ok(%x: tensor<8xf32, #P>, %g: tensor<8xf32>) -> (tensor<8xf32, #P>, tensor<8xf32>) {
  %0 = dist.redistribute %x : tensor<8xf32, #P> to tensor<8xf32, #R>
  %1 = aten.mul %g, %0 {dist.sharding = [#dist.sharding<#mesh, [?]>]} : (tensor<8xf32>, tensor<8xf32, #R>) -> tensor<8xf32>
  %2 = dist.redistribute backward %1 : tensor<8xf32> to tensor<8xf32, #P>
  %3 = dist.redistribute backward %2 : tensor<8xf32, #P> to tensor<8xf32>
  %4 = dist.constrain %3 : tensor<8xf32> to #dist.layout<#mesh, [S(0)]>
  return %2, %4 : tensor<8xf32, #P>, tensor<8xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>
func.func @rules(%x: tensor<8xf32, #P>, %g: tensor<8xf32>, %y: tensor<8xf32, #R>) {
  // expected-error@+1 {{'aten.relu' axis "tp": operand 0 is P(sum), but the op is not linear in it: reduce it first}}
  %0 = aten.relu %x : (tensor<8xf32, #P>) -> tensor<8xf32, #P>
  // expected-error@+1 {{'aten.add' has results with a layout, but operand 0 has none: only dist.redistribute starts from what is still to be placed}}
  %1 = aten.add %g, %y : (tensor<8xf32>, tensor<8xf32, #R>) -> tensor<8xf32, #R>
  // expected-error@+1 {{'aten.split_with_sizes' has results with and without a layout: it is placed as a whole, or not at all}}
  %2:2 = aten.split_with_sizes %y [4, 4] dim 0 : (tensor<8xf32, #R>) -> (tensor<4xf32, #R>, tensor<4xf32>)
  return
}

// -----

// expected-error@+1 {{a tensor without a layout}}
func.func @encoded(%x: tensor<8xf32, "other">) {
  return
}

// -----

func.func @local(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.axis_index' is no op of the stage "half-placed"}}
  %0 = dist.axis_index over #dist.axes<#dist.mesh<["tp" = 4]>, ["tp"]>
  return
}
