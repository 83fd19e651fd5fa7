// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt --dist-schedule-collectives="memory-limit=1" %s 2>&1 | FileCheck %s
// RUN: not shard-opt --dist-bucket-collectives %s 2>&1 | FileCheck %s

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// 2^80 and 2^82 bytes, which are none modulo 2^64.
// CHECK: error: 'func.func' op cannot be optimised: the tensors take more than 1000000000000000000 bytes together; the largest, of 18446744073709551615 bytes or more, is an input
func.func @f(%x: tensor<1099511627776x274877906944xf32>) -> tensor<1099511627776x1099511627776xf32> {
  %0 = dist.all_gather over #dp %x dim 1 : (tensor<1099511627776x274877906944xf32>) -> tensor<1099511627776x1099511627776xf32>
  return %0 : tensor<1099511627776x1099511627776xf32>
}
