// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-schedule --split-input-file --verify-diagnostics %s

// Two ranks that differ in one thing that a collective says. Rank 0 runs @f0, rank 1 @f1.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Reduction.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_reduce sum}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>) {
    // expected-note @+1 {{rank 1 has there: all_reduce max}}
    %a = dist.all_reduce max over #tp %x : tensor<4xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Element type: as many bytes, other numbers.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf16>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_reduce sum}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf16>
    return
  }
  func.func @f1(%x: tensor<4xbf16>) {
    // expected-note @+1 {{rank 1 has there: all_reduce sum}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xbf16>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Who sends.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: broadcast}}
    %a = dist.broadcast over #tp from 0 %x : tensor<4xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>) {
    // expected-note @+1 {{rank 1 has there: broadcast}}
    %a = dist.broadcast over #tp from 1 %x : tensor<4xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Who sends to whom.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: permute}}
    %a = dist.permute over #tp pairs [[0, 1]] %x : tensor<4xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>) {
    // expected-note @+1 {{rank 1 has there: permute}}
    %a = dist.permute over #tp pairs [[1, 0]] %x : tensor<4xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// The dim that pieces lie along.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4x4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_gather}}
    %a = dist.all_gather over #tp %x dim 0 : (tensor<4x4xf32>) -> tensor<8x4xf32>
    return
  }
  func.func @f1(%x: tensor<4x4xf32>) {
    // expected-note @+1 {{rank 1 has there: all_gather}}
    %a = dist.all_gather over #tp %x dim 1 : (tensor<4x4xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// The dim that is cut.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4x4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_to_all}}
    %a = dist.all_to_all over #tp %x split 0 concat 1 : (tensor<4x4xf32>) -> tensor<2x8xf32>
    return
  }
  func.func @f1(%x: tensor<4x4xf32>) {
    // expected-note @+1 {{rank 1 has there: all_to_all}}
    %a = dist.all_to_all over #tp %x split 1 concat 0 : (tensor<4x4xf32>) -> tensor<8x2xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Tensors of a bucket: their number,
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_reduce sum}}
    %a:2 = dist.all_reduce sum over #tp %x, %x : tensor<4xf32>, tensor<4xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>) {
    // expected-note @+1 {{rank 1 has there: all_reduce sum}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// and their order.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>, %y: tensor<6xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: 4, 6 elements}}
    %a:2 = dist.all_reduce sum over #tp %x, %y : tensor<4xf32>, tensor<6xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>, %y: tensor<6xf32>) {
    // expected-note @+1 {{rank 1 has there: 6, 4 elements}}
    %a:2 = dist.all_reduce sum over #tp %y, %x : tensor<6xf32>, tensor<4xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// The order of ranks in a group, which is who holds which piece.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_gather}}
    %a = dist.all_gather over #dist.groups<[[0, 1]]> %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
    return
  }
  func.func @f1(%x: tensor<4xf32>) {
    // expected-note @+1 {{rank 1 has there: all_gather}}
    %a = dist.all_gather over #dist.groups<[[1, 0]]> %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
    return
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// One rank waits, the other does not.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %f = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    %a = dist.wait %f : !dist.future<tensor<4xf32>>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{result 0 is never waited for: nothing says when its operands may be overwritten}}
    %f = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    return %x : tensor<4xf32>
  }
}
