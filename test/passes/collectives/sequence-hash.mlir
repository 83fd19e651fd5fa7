// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-verify-schedule %s | grep -oE 'dist.sequence_hash = "[0-9a-f]{16}"' > %t
// RUN: cat %t | count 17
// RUN: sort -u %t | count 16

// Ranks compare the hash before their first collective. These functions differ in one thing each, some of them only in
// the last character of what describes the last collective; only @other_sizes has the hash of @base, because sizes
// depend on the rank.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @base(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce sum over #tp %x : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @other_sizes(%x: tensor<6x2xf32>) -> tensor<6x2xf32> {
  %r = dist.all_reduce sum over #tp %x : tensor<6x2xf32>
  return %r : tensor<6x2xf32>
}
func.func @reduction(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce max over #tp %x : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @group(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce sum over #dp %x : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @element_type(%x: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %r = dist.all_reduce sum over #tp %x : tensor<4x4xf64>
  return %r : tensor<4x4xf64>
}
func.func @two_tensors(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %r:2 = dist.all_reduce sum over #tp %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @twice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce sum over #tp %x : tensor<4x4xf32>
  %s = dist.all_reduce sum over #tp %r : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
func.func @order(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce sum over #tp %x : tensor<4x4xf32>
  %s = dist.all_reduce sum over #dp %r : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
func.func @reversed(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = dist.all_reduce sum over #dp %x : tensor<4x4xf32>
  %s = dist.all_reduce sum over #tp %r : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
func.func @kind(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %r = dist.all_gather over #tp %x dim 0 : (tensor<4x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
func.func @dim(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  %r = dist.all_gather over #tp %x dim 1 : (tensor<4x4xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
func.func @last_dim(%x: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %r:2 = dist.all_gather over #tp %x dim 0, %x dim 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return %r#0, %r#1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func @last_dim_changed(%x: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %r:2 = dist.all_gather over #tp %x dim 0, %x dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>)
  return %r#0, %r#1 : tensor<8x4xf32>, tensor<4x8xf32>
}
func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.broadcast over #tp from 0 %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @root_changed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.broadcast over #tp from 1 %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @pairs(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.permute over #tp pairs [[0, 1]] %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @pairs_changed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.permute over #tp pairs [[1, 0]] %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
