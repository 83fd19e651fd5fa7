// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-schedule --split-input-file --verify-diagnostics %s
//
// Numbers in the sequence that all ranks share: only what is of a mesh that a rank is outside of may be missing there.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
#io = #dist.mesh<["io" = 2], devices = [1, 2]>
#both = #dist.axes<#io, ["io"]>

// Rank 2 is outside of the mesh: it lacks number 0, and its own number 1 is the same as that of rank 1. This is right.
module attributes {dist.mesh = #mesh, dist.meshes = {io = #io}, dist.specializations = {f = #dist.variants<[@f0, @f1, @f2], [0, 1, 2]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x {dist.ordinal = 0 : i64} : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x {dist.ordinal = 0 : i64} : tensor<4xf32>
    %b = dist.all_reduce max over #both %a {dist.ordinal = 1 : i64} : tensor<4xf32>
    return %b : tensor<4xf32>
  }
  func.func @f2(%x: tensor<4xf32>) -> tensor<4xf32> {
    %b = dist.all_reduce max over #both %x {dist.ordinal = 1 : i64} : tensor<4xf32>
    return %b : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Rank 1 is in the group of number 0.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{is collective 0 of rank 0, but rank 1 does not run it: it would wait forever}}
    %a = dist.all_reduce sum over #tp %x {dist.ordinal = 0 : i64} : tensor<4xf32>
    %b = dist.all_reduce max over #tp %a {dist.ordinal = 1 : i64} : tensor<4xf32>
    return %b : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    %b = dist.all_reduce max over #tp %x {dist.ordinal = 1 : i64} : tensor<4xf32>
    return %b : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0], [0, 0]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x {dist.ordinal = 1 : i64} : tensor<4xf32>
    // expected-error @+1 {{has the number 1 in the sequence that all ranks share, but comes after number 1 on rank 0}}
    %b = dist.all_reduce max over #tp %a {dist.ordinal = 1 : i64} : tensor<4xf32>
    return %b : tensor<4xf32>
  }
}
