// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-expand-sort | FileCheck %s

// Few of many are put into their places one by one; equal sorts share a kernel.
// CHECK-LABEL: func.func @few
// CHECK: exec.launch @sort(%arg0, %arg1, %arg2) name "topk"
// CHECK-NEXT: exec.launch @sort(%arg0, %arg1, %arg2) name "topk"
func.func @few(%x: memref<4x100xf32>, %v: memref<4x8xf32>, %p: memref<4x8xi64>) {
  exec.sort %x -> %v, %p dim 1 descending name "topk" : memref<4x100xf32> -> memref<4x8xf32>, memref<4x8xi64>
  exec.sort %x -> %v, %p dim 1 descending name "topk" : memref<4x100xf32> -> memref<4x8xf32>, memref<4x8xi64>
  return
}

// Others are merged, in two buffers of a row.
// CHECK-LABEL: func.func @all
// CHECK: exec.launch @sort_0(%arg0, %arg1, %arg2) name "sort"
func.func @all(%x: memref<?x9xi64>, %v: memref<?x9xi64>, %p: memref<?x9xi64>) {
  exec.sort %x -> %v, %p dim 1 name "sort" : memref<?x9xi64> -> memref<?x9xi64>, memref<?x9xi64>
  return
}

// CHECK: func.func private @sort({{.*}}exec.writes = array<i64: 1, 2>
// CHECK: exec.parallel
// CHECK: memref.alloc() : memref<8xi32>
// CHECK: memref.alloc() : memref<8xindex>
// CHECK: func.func private @sort_0(
// CHECK: exec.parallel
// CHECK: memref.alloc() : memref<2x9xi64>
// CHECK: memref.alloc() : memref<2x9xindex>
