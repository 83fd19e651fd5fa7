// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-expand-scatter --split-input-file | FileCheck %s

// Rows of a table with 300 columns. The result has 1000 rows, whose number has two digits of 8 bits; two passes leave the
// pairs in the half where they were.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: exec.launch @[[K:.*]](%arg0, %arg1, %arg2, %arg3) name "index_put"
// CHECK-NOT: exec.scatter
// CHECK: func.func private @[[K]](%[[X:.*]]: memref<1000x300xbf16>, %[[V:.*]]: memref<4x300xbf16>, %[[I:.*]]: memref<4x300xi64, strided<[1, 0]{{.*}}>, %[[O:.*]]: memref<1000x300xbf16>) attributes {exec.kernel, exec.writes = array<i64: 3>}
// CHECK: %[[KEYS:.*]] = memref.alloc() : memref<8xi32>
// CHECK: %[[NUMBERS:.*]] = memref.alloc() : memref<8xi32>
// CHECK: memref.alloc() : memref<256xi32>
// CHECK: memref.alloc() : memref<256xi32>
// The row of each update: negative positions count from the end, one out of range is a failure, and goes behind the last row.
// CHECK: gpu.launch
// CHECK: %[[AT:.*]] = memref.load %[[I]]
// CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[AT]]
// CHECK: %[[PLACE:.*]] = arith.select %[[NEGATIVE]]
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[PLACE]]
// CHECK: %[[ROWS:.*]] = arith.constant 1000 : i32
// CHECK: %[[ROW:.*]] = arith.select %[[IN]], %{{.*}}, %[[ROWS]]
// CHECK: memref.store %[[ROW]], %[[KEYS]]
// CHECK: memref.store %{{.*}}, %[[NUMBERS]]
// CHECK: %[[OUT:.*]] = arith.xori %[[IN]]
// CHECK: exec.fail_if %[[OUT]], "out of range"
// CHECK: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[TWO]]
// Digits of tiles, sums of them, and places; lanes vote on who has the same digit, and nothing is atomic.
// CHECK: gpu.launch {{.*}} workgroup(%{{.*}} : memref<2048xi32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-9: nvvm.vote.sync ballot
// CHECK: gpu.launch {{.*}} workgroup(%{{.*}} : memref<256xi32, #gpu.address_space<workgroup>>)
// CHECK: gpu.launch {{.*}} workgroup(%{{.*}} : memref<2048xi32, #gpu.address_space<workgroup>>, %{{.*}} : memref<256xi32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-18: nvvm.vote.sync ballot
// CHECK-NOT: atomic
// CHECK-NOT: nvvm.vote.sync
// Sums: two threads find the updates of the block's rows, then each those of its row. Every sum is rounded.
// CHECK: gpu.launch {{.*}} workgroup(%{{.*}} : memref<2xi32, #gpu.address_space<workgroup>>)
// CHECK: scf.while
// CHECK: gpu.barrier
// CHECK-COUNT-2: scf.while
// CHECK: %[[BEFORE:.*]] = memref.load %[[X]]
// CHECK: %[[MANY:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[BEFORE]]) -> (bf16)
// CHECK-COUNT-8: memref.load %[[V]]
// CHECK-COUNT-8: arith.truncf {{.*}} : f32 to bf16
// CHECK: scf.yield
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[MANY]]) -> (bf16)
// CHECK: memref.store %[[SUM]], %[[O]]
func.func @rows(%x: memref<1000x300xbf16>, %v: memref<4x300xbf16>, %i: memref<4x300xi64, strided<[1, 0]>>, %o: memref<1000x300xbf16>) {
  exec.scatter %x, %v at %i -> %o loops [-1, 1] wraps "out of range" name "index_put"
      : memref<1000x300xbf16>, memref<4x300xbf16> at memref<4x300xi64, strided<[1, 0]>> -> memref<1000x300xbf16>
  return
}

// -----

// Sizes that are known only at run time: numbers have 64 bits, and the number of passes is computed.
// CHECK-LABEL: func.func @unknown
// CHECK: func.func private @scatter_add(%{{.*}}: memref<?x8xf32>, %[[V:.*]]: memref<?x8xf32>, %{{.*}}: memref<?x8xi32>, %[[O:.*]]: memref<?x8xf32>)
// CHECK: memref.dim %[[O]]
// CHECK: memref.dim %[[V]]
// CHECK: memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: gpu.launch
// CHECK: memref.load {{.*}} : memref<?x8xi32>
// CHECK: arith.extsi {{.*}} : i32 to i64
// CHECK: %[[BIG:.*]] = arith.constant 72057594037927936 : i64
// CHECK: arith.cmpi uge, %{{.*}}, %[[BIG]]
// CHECK: scf.for
// CHECK-COUNT-3: gpu.launch
// CHECK: gpu.launch
func.func @unknown(%x: memref<?x8xf32>, %v: memref<?x8xf32>, %i: memref<?x8xi32>, %o: memref<?x8xf32>) {
  exec.scatter %x, %v at %i -> %o loops [-1, 1] "out of range"
      : memref<?x8xf32>, memref<?x8xf32> at memref<?x8xi32> -> memref<?x8xf32>
  return
}
