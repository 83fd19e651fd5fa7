// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-schedule --split-input-file --verify-diagnostics %s

// Programs of several ranks that do not fit together. Rank 0 runs @f0, rank 1 @f1.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
    // expected-error @+1 {{is collective 0 of rank 0: all_reduce sum over #dist.groups<}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    %b = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
    return %a, %b : tensor<4xf32>, tensor<8xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
    // expected-note @+1 {{rank 1 has there: all_gather over}}
    %b = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> tensor<8xf32>
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<8xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    // expected-error @+1 {{is collective 1 of rank 1, but rank 0 has no more: it would wait forever}}
    %b = dist.all_reduce sum over #tp %a : tensor<4xf32>
    return %b : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Another number of elements.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{is collective 0 of rank 0: 4 elements}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<5xf32>) -> tensor<5xf32> {
    // expected-note @+1 {{rank 1 has there: 5 elements}}
    %a = dist.all_reduce sum over #tp %x : tensor<5xf32>
    return %a : tensor<5xf32>
  }
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>

// Groups: rows of the mesh, and columns.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1, 0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{is collective 0 of rank 0}}
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-note @+1 {{rank 1 has there: all_reduce sum over}}
    %a = dist.all_reduce sum over #dp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Rows of an uneven batch have different numbers of elements, and never meet: this is right.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 0, 1, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<5xf32>) -> tensor<5xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<5xf32>
    return %a : tensor<5xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Ranks 0 and 1 hold 3 and 2 of 5 rows; here they have each other's part.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<2xf32>) -> tensor<5xf32> {
    // expected-error @+1 {{tensor 0: rank 0 has 2 elements along the dim, but at position 0 of its group there are 3}}
    %a = dist.all_gather over #tp %x dim 0 : (tensor<2xf32>) -> tensor<5xf32>
    return %a : tensor<5xf32>
  }
  func.func @f1(%x: tensor<3xf32>) -> tensor<5xf32> {
    // expected-error @+1 {{tensor 0: rank 1 has 3 elements along the dim, but at position 1 of its group there are 2}}
    %a = dist.all_gather over #tp %x dim 0 : (tensor<3xf32>) -> tensor<5xf32>
    return %a : tensor<5xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What rank 1 runs is not there.
// expected-error @+1 {{'dist.specializations' names @gone, which is no function of the module}}
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @gone], [0, 1]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// No rank runs @f1, so nothing waits for what it issues: this is right.
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 0]>}} {
  func.func @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  func.func @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Each pair has a count of its own in an all-to-all within one dim: here rank 0 sends two rows that rank 1 does not expect.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: tensor<3x4xf32>) -> tensor<5x4xf32> {
    %a = dist.all_to_all over #tp %x split 0 extents [1, 2] concat 0 extents [1, 4] : (tensor<3x4xf32>) -> tensor<5x4xf32>
    // expected-error @+1 {{tensor 0: rank 0 gives rank 1 2 elements along the dim}}
    %b = dist.all_to_all over #tp %x split 0 extents [1, 2] concat 0 extents [1, 4] : (tensor<3x4xf32>) -> tensor<5x4xf32>
    return %b : tensor<5x4xf32>
  }
  func.func @f1(%x: tensor<4x4xf32>) -> tensor<3x4xf32> {
    %a = dist.all_to_all over #tp %x split 0 extents [4, 0] concat 0 extents [2, 0] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    // expected-note @+1 {{rank 1 expects 3}}
    %b = dist.all_to_all over #tp %x split 0 extents [4, 0] concat 0 extents [3, 0] : (tensor<4x4xf32>) -> tensor<3x4xf32>
    return %b : tensor<3x4xf32>
  }
}
