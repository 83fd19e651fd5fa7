// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-warn-unsharded --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-COUNT-3: aten.relu

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
// expected-warning @below {{nothing is sharded: every rank computes the whole model; say with --plan or --place what is}}
module attributes {dist.mesh = #mesh} {
  func.func @replicated(%x: tensor<8xf32, #R>) -> tensor<8xf32, #R> {
    %y = aten.relu %x : (tensor<8xf32, #R>) -> tensor<8xf32, #R>
    return %y : tensor<8xf32, #R>
  }
}

// -----

// One sharded value is enough.
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
  func.func @sharded(%x: tensor<8xf32, #R>) -> tensor<8xf32, #R> {
    %0 = dist.redistribute %x : tensor<8xf32, #R> to tensor<8xf32, #S>
    %y = aten.relu %0 : (tensor<8xf32, #S>) -> tensor<8xf32, #S>
    %1 = dist.redistribute %y : tensor<8xf32, #S> to tensor<8xf32, #R>
    return %1 : tensor<8xf32, #R>
  }
}

// -----

// A mesh of one device has nothing to shard over.
#mesh = #dist.mesh<["tp" = 1]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh} {
  func.func @alone(%x: tensor<8xf32, #R>) -> tensor<8xf32, #R> {
    %y = aten.relu %x : (tensor<8xf32, #R>) -> tensor<8xf32, #R>
    return %y : tensor<8xf32, #R>
  }
}
