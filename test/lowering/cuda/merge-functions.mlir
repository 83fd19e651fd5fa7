// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-merge-functions | FileCheck %s
// Functions that differ in a constant, or in their blocks, stay.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: gpu.func @a(
    gpu.func @a(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c = arith.constant 1.0 : f32
      memref.store %c, %x[] : memref<f32>
      gpu.return
    }
    // CHECK-NEXT: arith.constant
    // CHECK: gpu.func @other_constant(
    gpu.func @other_constant(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c = arith.constant 2.0 : f32
      memref.store %c, %x[] : memref<f32>
      gpu.return
    }
    // CHECK: gpu.func @other_block(
    gpu.func @other_block(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c = arith.constant 1.0 : f32
      memref.store %c, %x[] : memref<f32>
      gpu.return
    }
    // CHECK-NOT: gpu.func @same(
    gpu.func @same(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c = arith.constant 1.0 : f32
      memref.store %c, %x[] : memref<f32>
      gpu.return
    }
  }
  // CHECK: func.func private @k
  func.func private @k(%x: memref<f32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    // CHECK: gpu.launch_func @kernels::@a
    gpu.launch_func @kernels::@same blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>)
    // CHECK: gpu.launch_func @kernels::@other_constant
    gpu.launch_func @kernels::@other_constant blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<f32>)
    return
  }
}
