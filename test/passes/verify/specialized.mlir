// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-stage=specialized --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK: func.func @right
// CHECK: func.func @symbols

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh, dist.specializations = {right = #dist.variants<[@right], [0, 0]>}} {
  func.func @right(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = aten.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// What depends on a symbol stays dynamic, here with a collective in flight.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dist.mesh = #mesh, dist.specializations = {symbols = #dist.variants<[@symbols], [0, 0]>}} {
  func.func @symbols(%x: tensor<?xf32> {dist.sizes = [#dist.size<n>]}) -> tensor<?xf32>
      attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
    %f = dist.all_reduce sum over #tp %x : (tensor<?xf32>) -> !dist.future<tensor<?xf32>>
    %y = dist.wait %f : !dist.future<tensor<?xf32>>
    return %y : tensor<?xf32>
  }
}

// -----

// expected-error @below {{the module has no 'dist.specializations', which say what each rank runs; run dist-specialize}}
module {
  func.func @local(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
// expected-error @below {{'dist.specializations' names 'gone', which is no function of the module}}
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@gone], [0, 0]>}} {
  // expected-error @below {{no rank runs 'other': 'dist.specializations' does not name it}}
  func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f], [0, 0]>}} {
  // expected-error @below {{argument 0 has a dynamic dim, but no 'dist.layout' or 'dist.sizes' that gives its size}}
  // expected-error @below {{an argument has a dynamic size, but the function has no symbols: every rank knows its sizes in the stage "specialized"}}
  func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
    // expected-error @below {{has a dynamic size, but the function has no symbols: every rank knows its sizes in the stage "specialized"}}
    %y = aten.relu %x : (tensor<?xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
}

// -----

// What is wrong in the local stage is wrong here.
#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f], [0, 0]>}} {
  // expected-error @below {{a tensor with a layout (or another encoding)}}
  func.func @f(%x: tensor<4xf32, #R>) {
    return
  }
}
