// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @valid
// CHECK: exec.scatter %arg0, %arg1 at %arg2 -> %arg3 loops [-1, 1] wraps "out of range" name "index_put" : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
func.func @valid(%x: memref<10x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64>, %o: memref<10x8xf32>) {
  exec.scatter %x, %v at %i -> %o loops [-1, 1] wraps "out of range" name "index_put"
      : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  // CHECK: exec.scatter %arg0, %arg1 at %arg2 -> %arg3 loops [-1, 1] skips "out of range" {combine = "assign"} : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  exec.scatter %x, %v at %i -> %o loops [-1, 1] skips "out of range" {combine = "assign"}
      : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  return
}

// -----

func.func @f(%v: memref<4x8xf32>, %i: memref<4x8xi64>, %o: memref<10x8xf32>) {
  // expected-error@+1 {{has no way "or" to combine elements}}
  exec.scatter %o, %v at %i -> %o loops [-1, 1] "" {combine = "or"} : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  return
}

// -----

func.func @f(%x: memref<9x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64>, %o: memref<10x8xf32>) {
  // expected-error@+1 {{copies 'memref<9x8xf32>' to 'memref<10x8xf32>'}}
  exec.scatter %x, %v at %i -> %o loops [-1, 1] "" : memref<9x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  return
}

// -----

func.func @f(%v: memref<4x8xf64>, %i: memref<4x8xi64>, %o: memref<10x8xf32>) {
  // expected-error@+1 {{combines elements of 'memref<4x8xf64>' with those of 'memref<10x8xf32>'}}
  exec.scatter %o, %v at %i -> %o loops [-1, 1] "" : memref<10x8xf32>, memref<4x8xf64> at memref<4x8xi64> -> memref<10x8xf32>
  return
}

// -----

func.func @f(%i: memref<i64>, %o: memref<f32>) {
  // expected-error@+1 {{has no dim with positions}}
  exec.scatter %o, %o at %i -> %o loops [] "" : memref<f32>, memref<f32> at memref<i64> -> memref<f32>
  return
}

// -----

func.func @f(%v: memref<4x8xf32>, %i: memref<4xi64>, %o: memref<10x8xf32>) {
  // expected-error@+1 {{has positions 'memref<4xi64>' for values 'memref<4x8xf32>'}}
  exec.scatter %o, %v at %i -> %o loops [-1, 1] "" : memref<10x8xf32>, memref<4x8xf32> at memref<4xi64> -> memref<10x8xf32>
  return
}

// -----

func.func @f(%v: memref<4x8xf32>, %i: memref<4x8xi64>, %o: memref<10x8xf32>) {
  // expected-error@+1 {{needs for each dim of 'memref<10x8xf32>' one of the dims of 'memref<4x8xf32>', or -1 for each of the 1 indices; got [0, 1]}}
  exec.scatter %o, %v at %i -> %o loops [0, 1] "" : memref<10x8xf32>, memref<4x8xf32> at memref<4x8xi64> -> memref<10x8xf32>
  return
}
