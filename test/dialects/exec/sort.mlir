// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @valid
// CHECK: exec.sort %arg0 -> %arg1, %arg2 dim 1 descending name "topk" : memref<4x?xf32> -> memref<4x8xf32>, memref<4x8xi64>
func.func @valid(%x: memref<4x?xf32>, %v: memref<4x8xf32>, %p: memref<4x8xi64>) {
  exec.sort %x -> %v, %p dim 1 descending name "topk" : memref<4x?xf32> -> memref<4x8xf32>, memref<4x8xi64>
  return
}

// -----

func.func @f(%x: memref<f32>, %p: memref<i64>) {
  // expected-error@+1 {{has no dim 0 in 'memref<f32>'}}
  exec.sort %x -> %x, %p dim 0 : memref<f32> -> memref<f32>, memref<i64>
  return
}

// -----

func.func @f(%x: memref<4x7xf32>, %v: memref<4x8xf32>, %p: memref<4x8xi64>) {
  // expected-error@+1 {{sorts 'memref<4x7xf32>' into 'memref<4x8xf32>'}}
  exec.sort %x -> %v, %p dim 1 : memref<4x7xf32> -> memref<4x8xf32>, memref<4x8xi64>
  return
}

// -----

func.func @f(%x: memref<4x8xf32>, %p: memref<4x8xi32>) {
  // expected-error@+1 {{has positions 'memref<4x8xi32>' for 'memref<4x8xf32>'}}
  exec.sort %x -> %x, %p dim 1 : memref<4x8xf32> -> memref<4x8xf32>, memref<4x8xi32>
  return
}
