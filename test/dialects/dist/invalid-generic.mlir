// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

// What the ops' own syntax cannot say, but the generic form can.

#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{delivers one result for each tensor: expected 2 results, got 1}}
  %0 = "dist.all_reduce"(%x, %x) <{group = #g, reduction = #dist.reduction<sum>}> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs one dim for each of 1 tensors, got 2}}
  %0 = "dist.all_gather"(%x) <{dims = array<i64: 0, 0>, group = #g, operandSegmentSizes = array<i32: 1, 0>}> : (tensor<8xf32>) -> tensor<32xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs one list of extents for each of 1 tensors (an empty one for chunks), got 2}}
  %0 = "dist.all_gather"(%x) <{dims = array<i64: 0>, extents = [array<i64>, array<i64>], group = #g, operandSegmentSizes = array<i32: 1, 0>}> : (tensor<8xf32>) -> tensor<32xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: extents must be a list of integers, got "8"}}
  %0 = "dist.all_gather"(%x) <{dims = array<i64: 0>, extents = ["8"], group = #g, operandSegmentSizes = array<i32: 1, 0>}> : (tensor<8xf32>) -> tensor<32xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{pairs must be source and target positions, got an odd number of entries}}
  %0 = "dist.permute"(%x) <{dims = array<i64: -1>, group = #g, operandSegmentSizes = array<i32: 1, 0>, pairs = array<i64: 0, 1, 2>}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a tensor operand}}
  %0 = dist.all_reduce sum over #g %x, : tensor<8xf32>
  return
}
