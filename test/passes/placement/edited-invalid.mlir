// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-place --split-input-file --verify-diagnostics %s

// Placement alone has nothing to go by.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{no tensor has a 'dist.sharding': run dist-propagate first, which says what dist-place is to do}}
  func.func @alone(%x: tensor<8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>}) -> tensor<8xf32> {
    %0 = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// An op that somebody has added, or that a pass between the two has made.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  func.func @added(%x: tensor<8xf32> {dist.sharding = #none}) -> (tensor<8xf32> {dist.sharding = #none}) {
    // expected-error @+1 {{'aten.neg' has no 'dist.sharding', as 2 of 5 tensors: run dist-propagate again, or write one with ? for each axis to ask for nothing}}
    %0 = aten.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    // expected-note @+1 {{'aten.abs' has no 'dist.sharding' either}}
    %1 = aten.abs %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = aten.neg %1 {dist.sharding = [#none]} : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// The annotation and what became of it must agree: the first was changed, or the second.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{'x': S(0) over tp is asked for (plan.yaml:7), but its 'dist.sharding' says S(1) given: change what is asked for as well, or run dist-propagate again}}
  func.func @annotation(%x: tensor<8x4xf32> {dist.name = "x", dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.origin = ["plan.yaml:7"],
                                           dist.sharding = #dist.sharding<#mesh, [S(1) given]>})
      -> (tensor<8x4xf32> {dist.sharding = #none}) {
    // expected-error @+1 {{R over tp is asked for, but its 'dist.sharding' says ?: change what is asked for as well, or run dist-propagate again}}
    %0 = dist.constrain %x {dist.sharding = [#none]} : tensor<8x4xf32> to #dist.layout<#mesh, [R]>
    return %0 : tensor<8x4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{result 0: S(0) over tp is asked for, but its 'dist.sharding' says ?}}
  func.func @result_annotation(%x: tensor<8x4xf32> {dist.sharding = #none})
      -> (tensor<8x4xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.sharding = #none}) {
    return %x : tensor<8x4xf32>
  }
}

// -----

// What an op cannot make.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  func.func @cannot(%x: tensor<8xf32> {dist.sharding = #none}) -> (tensor<8xf32> {dist.sharding = #none}) {
    // expected-error @+1 {{result 0 is to be P(max) over tp, but the op cannot make it so from what its operands are; leave it open, and put a dist.constrain behind the op}}
    %0 = aten.neg %x {dist.sharding = [#dist.sharding<#mesh, [P(max)]>]} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// What is the same on all ranks stays so.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  func.func @invariant() -> (tensor<16xi64> {dist.sharding = #none}) {
    // expected-error @+1 {{'aten.arange' is made from constants and buffers alone, or they are made into such a value: it is whole on every rank, so its 'dist.sharding' must be R on every axis; put a dist.constrain where a part of it is to be used}}
    %0 = aten.arange [0 : 16 : 1] i64 {dist.sharding = [#dist.sharding<#mesh, [S(0)]>]} : tensor<16xi64>
    return %0 : tensor<16xi64>
  }
}

// -----

// A buffer and its new value.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{result 0: it is the new value of an argument whose 'dist.sharding' says S(0) over tp, but its own says ?: the next run starts from it, so both must be the same}}
  func.func @tied(%m: tensor<8xf32> {dist.kind = "buffer", dist.name = "m", dist.sharding = #dist.sharding<#mesh, [S(0)]>})
      -> (tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "m", dist.sharding = #none}) {
    %0 = aten.neg %m {dist.sharding = [#none]} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// A mesh that is not the program's.
#mesh = #dist.mesh<["tp" = 4]>
#none = #dist.sharding<#mesh, [?]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{argument 0 has a 'dist.sharding' for #dist.mesh<["tp" = 2]>, which is not the module's 'dist.mesh'}}
  func.func @mesh(%x: tensor<8xf32> {dist.sharding = #dist.sharding<#dist.mesh<["tp" = 2]>, [?]>}) -> (tensor<8xf32> {dist.sharding = #none}) {
    return %x : tensor<8xf32>
  }
}

// -----

// Ten rows over three ranks are 4, 4, 2: five blocks of two have no place inside.
#mesh = #dist.mesh<["a" = 3, "b" = 2]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{'x': no layout can have the placements [S(0), S(0, blocks = 5)]: an axis splits pieces of the blocks of another, or is inside one whose shards are uneven}}
  func.func @no_layout(%x: tensor<10xf32> {dist.name = "x", dist.sharding = #dist.sharding<#mesh, [S(0), S(0, blocks = 5)]>})
      -> (tensor<10xf32> {dist.sharding = #dist.sharding<#mesh, [?, ?]>}) {
    return %x : tensor<10xf32>
  }
}
