// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=packed | FileCheck %s
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=packed --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// Casts and divisions around a bucket are its copy-in and copy-out (B6): they write into its buffer and read from it. Copied
// are only the 20 elements of 2 bytes that a gather delivers rank by rank; in place are 10 of 2 and 17 of 4, which are reduced where they are.
// STATS-DAG: 40{{ +}}copied-bytes
// STATS-DAG: 88{{ +}}in-place-bytes

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// CHECK-LABEL: func.func @casts_before_a_gather(
// CHECK-NOT: name "copy"
// CHECK: exec.launch @to_copy
// CHECK-NOT: name "copy"
// CHECK: exec.launch @to_copy
// CHECK-NOT: name "copy"
// CHECK: exec.collective all_gather{{.*}}(%[[IN:.*]] : memref<10xbf16>) -> (%[[ALL:.*]] : memref<20xbf16>)
// CHECK-COUNT-2: name "copy"
// CHECK-NOT: name "copy"
// CHECK: return
func.func @casts_before_a_gather(%x: tensor<2x3xf32>, %y: tensor<4xf32>) -> (tensor<4x3xbf16>, tensor<8xbf16>) {
  %0 = aten.to_copy %x to bf16 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  %1 = aten.to_copy %y to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
  %2:2 = dist.all_gather over #dp %0 dim 0, %1 dim 0 : (tensor<2x3xbf16>, tensor<4xbf16>) -> (tensor<4x3xbf16>, tensor<8xbf16>)
  %3 = aten.relu %2#0 : (tensor<4x3xbf16>) -> tensor<4x3xbf16>
  %4 = aten.relu %2#1 : (tensor<8xbf16>) -> tensor<8xbf16>
  return %3, %4 : tensor<4x3xbf16>, tensor<8xbf16>
}

// CHECK-LABEL: func.func @divisions_after_a_reduction(
// CHECK-NOT: name "copy"
// CHECK: exec.collective all_reduce{{.*}}(%[[IN:.*]] : memref<17xf32>) -> (%[[IN]] : memref<17xf32>)
// CHECK-NOT: name "copy"
// CHECK: exec.launch @div
// CHECK-NOT: name "copy"
// CHECK: exec.launch @div
// CHECK-NOT: name "copy"
// CHECK: return
func.func @divisions_after_a_reduction(%x: tensor<4x3xbf16>, %y: tensor<5xbf16>) -> (tensor<4x3xf32>, tensor<5xf32>) {
  %three = aten.constant dense<3.0> : tensor<f32>
  %0 = aten.to_copy %x to f32 : (tensor<4x3xbf16>) -> tensor<4x3xf32>
  %1 = aten.to_copy %y to f32 : (tensor<5xbf16>) -> tensor<5xf32>
  %2:2 = dist.all_reduce sum over #dp %0, %1 : tensor<4x3xf32>, tensor<5xf32>
  %3 = aten.div %2#0, %three : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %4 = aten.div %2#1, %three : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  return %3, %4 : tensor<4x3xf32>, tensor<5xf32>
}
