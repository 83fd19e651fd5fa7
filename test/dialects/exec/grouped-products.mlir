// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: memref<6x8xf32>, %w: memref<4x8x16xf32>, %i: memref<6xi64>, %y: memref<6x16xf32>, %t: memref<8x6xf32, strided<[1, 8]>>, %g: memref<4x8x16xf32>) {
  // CHECK: exec.grouped_gemm %{{.*}} * %{{.*}} at %{{.*}} -> %{{.*}} name "indexed_mm" :
  exec.grouped_gemm %x * %w at %i -> %y name "indexed_mm"
      : memref<6x8xf32> * memref<4x8x16xf32> at memref<6xi64> -> memref<6x16xf32>
  // CHECK: exec.grouped_gemm %{{.*}} * %{{.*}} at %{{.*}} -> %{{.*}} :
  exec.grouped_gemm %t * %y at %i -> %g
      : memref<8x6xf32, strided<[1, 8]>> * memref<6x16xf32> at memref<6xi64> -> memref<4x8x16xf32>
  return
}

// -----
func.func @f(%x: memref<6x8xf32>, %w: memref<8x16xf32>, %i: memref<6xi64>, %y: memref<6x16xf32>) {
  // expected-error@+1 {{has operands of 2 and 2 dims for a result of 2}}
  exec.grouped_gemm %x * %w at %i -> %y : memref<6x8xf32> * memref<8x16xf32> at memref<6xi64> -> memref<6x16xf32>
  return
}

// -----
func.func @f(%x: memref<6x8xf32>, %w: memref<4x8x16xf32>, %i: memref<6xi32>, %y: memref<6x16xf32>) {
  // expected-error@+1 {{has the index 'memref<6xi32>'}}
  exec.grouped_gemm %x * %w at %i -> %y : memref<6x8xf32> * memref<4x8x16xf32> at memref<6xi32> -> memref<6x16xf32>
  return
}

// -----
func.func @f(%x: memref<6x8xf32>, %w: memref<4x8x16xf32>, %i: memref<5xi64>, %y: memref<6x16xf32>) {
  // expected-error@+1 {{has shapes that do not multiply: 'memref<6x8xf32>', 'memref<4x8x16xf32>' at 'memref<5xi64>' -> 'memref<6x16xf32>'}}
  exec.grouped_gemm %x * %w at %i -> %y : memref<6x8xf32> * memref<4x8x16xf32> at memref<5xi64> -> memref<6x16xf32>
  return
}

// -----
func.func @f(%x: memref<6x8xi32>, %w: memref<4x8x16xi32>, %i: memref<6xi64>, %y: memref<6x16xi32>) {
  // expected-error@+1 {{multiplies floating-point matrices, not ones of 'i32'}}
  exec.grouped_gemm %x * %w at %i -> %y : memref<6x8xi32> * memref<4x8x16xi32> at memref<6xi64> -> memref<6x16xi32>
  return
}

// -----
func.func @f(%x: memref<6x8xf32, strided<[16, 2]>>, %w: memref<4x8x16xf32>, %i: memref<6xi64>, %y: memref<6x16xf32>) {
  // expected-error@+1 {{of which neither matrix stride is 1}}
  exec.grouped_gemm %x * %w at %i -> %y : memref<6x8xf32, strided<[16, 2]>> * memref<4x8x16xf32> at memref<6xi64> -> memref<6x16xf32>
  return
}
