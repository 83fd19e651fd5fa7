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
  // expected-error @+1 {{cannot be localised: nothing says what one rank computes}}
  %y = tensor.cast %x : tensor<8xf32, #S0> to tensor<8xf32, #S0>
  return %y : tensor<8xf32, #S0>
}
