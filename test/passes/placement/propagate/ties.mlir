// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --split-input-file | FileCheck %s

// Two annotations of one strength for which equally many bytes move: the operand that comes first has the axis, so that
// one program has one result.
#mesh = #dist.mesh<["tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @rows_first(
  // CHECK: aten.add %{{.*}} {dist.sharding = [#sharding_S0tp]}
  func.func @rows_first(%a: tensor<8x8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %b: tensor<8x8xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>}) -> tensor<8x8xf32> {
    %0 = aten.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }

  // CHECK-LABEL: func.func @columns_first(
  // CHECK: aten.add %{{.*}} {dist.sharding = [#sharding_S1tp]}
  func.func @columns_first(%a: tensor<8x8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>},
      %b: tensor<8x8xf32> {dist.annotation = #dist.layout<#mesh, [S(1)]>}) -> tensor<8x8xf32> {
    %0 = aten.add %b, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }

  // A buffer and its new value are one tensor to propagation: what one is asked, both are.
  // CHECK-LABEL: func.func @buffer(
  // CHECK-SAME: dist.kind = "buffer", dist.name = "m", dist.sharding = #sharding_S0tp}
  // CHECK-SAME: dist.kind = "buffer_mutation", dist.name = "m", dist.sharding = #sharding_S0tp})
  func.func @buffer(%m: tensor<8xf32> {dist.kind = "buffer", dist.name = "m"},
                    %x: tensor<8xf32> {dist.kind = "input", dist.name = "x", dist.annotation = #dist.layout<#mesh, [S(0)]>})
      -> (tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "m"}) {
    %0 = aten.add %m, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
