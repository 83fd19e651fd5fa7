// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-schedule --split-input-file --verify-diagnostics %s

// Programs that are broken in every way that one function can be.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @missing_wait(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'dist.all_reduce' op result 0 is never waited for: nothing says when its operands may be overwritten}}
  %f = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  return %x : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @double_wait(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, !dist.future<tensor<4xf32>>) {
  // expected-error @+1 {{result 1 is waited for or returned 3 times, must be once}}
  %f:2 = dist.all_reduce sum over #tp %x, %x : (tensor<4xf32>, tensor<4xf32>) -> (!dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>)
  %a = dist.wait %f#0 : !dist.future<tensor<4xf32>>
  // expected-note @+1 {{here}}
  %b = dist.wait %f#1 : !dist.future<tensor<4xf32>>
  // expected-note @+1 {{here}}
  %c = dist.wait %f#1 : !dist.future<tensor<4xf32>>
  // expected-note @+1 {{here}}
  return %a, %b, %f#1 : tensor<4xf32>, tensor<4xf32>, !dist.future<tensor<4xf32>>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @first_rank_only(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  // expected-note @+1 {{the rank is asked for here}}
  %p = dist.axis_index over #tp
  %first = arith.cmpi eq, %p, %zero : index
  %y = scf.if %first -> tensor<4xf32> {
    // expected-error @+1 {{runs under 'scf.if', which depends on the rank: the ranks would not issue the same collectives}}
    %r = dist.all_reduce sum over #tp %x : tensor<4xf32>
    scf.yield %r : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Both ways have the same collectives, but a count that nobody knows.
func.func @while_it_lasts(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> tensor<4xf32> {
    // expected-error @+1 {{stands in a region of 'scf.for': ranks may run it a different number of times; move it out of control flow}}
    %r = dist.all_reduce sum over #tp %a : tensor<4xf32>
    scf.yield %r : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = arith.constant 1 : index
  // expected-note @+1 {{the rank is asked for here}}
  %n = dist.extent #dist.extents<table [1, 2] over #mesh>
  %more = arith.cmpi ugt, %n, %one : index
  // expected-error @+1 {{chooses which collectives come next by the rank}}
  cf.cond_br %more, ^bb1, ^bb2(%x : tensor<4xf32>)
^bb1:
  %r = dist.all_reduce sum over #tp %x : tensor<4xf32>
  cf.br ^bb2(%r : tensor<4xf32>)
^bb2(%y: tensor<4xf32>):
  return %y : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.all_reduce sum over #tp %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @caller(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls a function that communicates: inline it}}
  %y = func.call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// expected-error @+1 {{has other collectives, or has them in another order, than when it was first verified: the hash of the sequence is}}
func.func @changed(%x: tensor<4xf32>) -> tensor<4xf32> attributes {dist.sequence_hash = "0123456789abcdef"} {
  %r = dist.all_reduce sum over #tp %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
