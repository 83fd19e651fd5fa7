// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-place --split-input-file --verify-diagnostics %s | FileCheck %s

// What somebody writes between the two passes is what is placed. An argument is always as it says.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @argument(
  // CHECK-SAME: tensor<8x4xf32, #S1tp>
  // CHECK: aten.neg {{.*}} -> tensor<8x4xf32, #S1tp>
  // CHECK-NOT: dist.sharding
  func.func @argument(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<#mesh, [S(1)]>}) -> (tensor<8x4xf32> {dist.sharding = #none}) {
    %0 = aten.neg %x {dist.sharding = [#none]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }

  // What is given to a result binds: here the op would rather keep the rows that it has.
  // CHECK-LABEL: func.func @result(
  // CHECK: %[[C:.*]] = dist.redistribute %{{.*}} : tensor<16x64xf32, #S0tp> to tensor<16x64xf32, #R>
  // CHECK: aten.linear %[[C]], {{.*}} -> tensor<16x32xf32, #S1tp>
  func.func @result(%x: tensor<16x64xf32> {dist.sharding = #dist.sharding<#mesh, [S(0)]>}, %w: tensor<32x64xf32> {dist.sharding = #none})
      -> (tensor<16x32xf32> {dist.sharding = #none}) {
    %0 = aten.linear %x, %w {dist.sharding = [#dist.sharding<#mesh, [S(1) given]>]} : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }

  // Replicated always binds.
  // CHECK-LABEL: func.func @whole(
  // CHECK: aten.linear {{.*}} -> tensor<16x32xf32, #R>
  func.func @whole(%x: tensor<16x64xf32> {dist.sharding = #dist.sharding<#mesh, [S(0)]>}, %w: tensor<32x64xf32> {dist.sharding = #none})
      -> (tensor<16x32xf32> {dist.sharding = #none}) {
    %0 = aten.linear %x, %w {dist.sharding = [#dist.sharding<#mesh, [R]>]} : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }

  // Without the word it is weighed: to exchange 16x32 results moves less than to gather 16x64 operands. That is said.
  // CHECK-LABEL: func.func @wish(
  // CHECK: aten.linear {{.*}} -> tensor<16x32xf32, #S0tp>
  func.func @wish(%x: tensor<16x64xf32> {dist.sharding = #dist.sharding<#mesh, [S(0)]>}, %w: tensor<32x64xf32> {dist.sharding = #none})
      -> (tensor<16x32xf32> {dist.sharding = #none}) {
    // expected-remark @+1 {{result 0 was to be S(1) over tp, but is S(0), which moves fewer bytes}}
    %0 = aten.linear %x, %w {dist.sharding = [#dist.sharding<#mesh, [S(1)]>]} : (tensor<16x64xf32>, tensor<32x64xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }

  // A buffer that was whole, because only what is made from it alone used it, may be sharded by hand.
  // CHECK-LABEL: func.func @buffer(
  // CHECK-SAME: tensor<8xf32, #S0tp>
  // CHECK: aten.neg {{.*}} -> tensor<8xf32, #S0tp>
  func.func @buffer(%m: tensor<8xf32> {dist.kind = "buffer", dist.name = "m", dist.sharding = #dist.sharding<#mesh, [S(0)]>})
      -> (tensor<8xf32> {dist.sharding = #none}) {
    %0 = aten.neg %m {dist.sharding = [#none]} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }

  // A layout of a result of the function is made by a redistribution.
  // CHECK-LABEL: func.func @returned(
  // CHECK: return %{{.*}} : tensor<8xf32, #S0tp>
  func.func @returned(%x: tensor<8xf32> {dist.sharding = #none}) -> (tensor<8xf32> {dist.sharding = #dist.sharding<#mesh, [S(0) given]>}) {
    return %x : tensor<8xf32>
  }
}
