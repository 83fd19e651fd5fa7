// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
