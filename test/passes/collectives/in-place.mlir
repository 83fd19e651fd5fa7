// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-schedule-collectives --split-input-file | FileCheck %s
//
// What an all-reduce overwrites is counted once.

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// The input and one more tensor of 24 bytes.
// CHECK-LABEL: func.func @once(
// CHECK-SAME: peak_before_bytes = 48 : i64, peak_bytes = 48 : i64
func.func @once(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = dist.all_reduce sum over #dp %0 : (tensor<6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// The input, what is reduced, its sum and the difference: what is read again is not overwritten.
// CHECK-LABEL: func.func @read_again(
// CHECK-SAME: peak_before_bytes = 96 : i64, peak_bytes = 96 : i64
func.func @read_again(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = dist.all_reduce sum over #dp %0 : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.sub %1, %0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// Another name on another mesh is the same memory, which is read again here.
// CHECK-LABEL: func.func @on_another_mesh(
// CHECK-SAME: peak_before_bytes = 96 : i64
func.func @on_another_mesh(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %m = dist.enter_mesh on #mesh %0 : tensor<6xf32> to tensor<6xf32>
  %1 = dist.all_reduce sum over #dp %m : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.sub %1, %0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}
