// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-expand-scatter | FileCheck %s

// The tensor is copied by rows on several threads, positions are checked, and threads add to parts of 128 columns: elements
// of one part one after the other, those in range.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: exec.launch @[[K:.*]](%arg0, %arg1, %arg2, %arg3) name "index_put"
// CHECK-NOT: exec.scatter
// CHECK: func.func private @[[K]](%[[X:.*]]: memref<10x300xbf16>, %[[V:.*]]: memref<4x300xbf16>, %[[I:.*]]: memref<4x300xi64, strided<[1, 0]{{.*}}>, %[[O:.*]]: memref<10x300xbf16>) attributes {exec.kernel, exec.writes = array<i64: 3>}
// CHECK: exec.parallel %[[ROW:.*]] to
// CHECK: memref.load %[[X]][%[[ROW]],
// CHECK: memref.store %{{.*}}, %[[O]][%[[ROW]],
// CHECK: %[[LOOP:.*]] = scf.for %[[AT:.*]] = %{{.*}} iter_args
// CHECK: memref.load %[[I]][%[[AT]], %c0
// CHECK: scf.yield
// CHECK: %[[VALID:.*]] = arith.ori %[[LOOP]],
// CHECK: %[[CHUNK:.*]] = arith.constant 128 : index
// CHECK: exec.parallel %[[PART:.*]] to %{{.*}} grain 32 {
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %[[CHUNK]]
// CHECK: %[[LAST:.*]] = arith.minui
// CHECK: scf.for %[[AT:.*]] =
// CHECK: memref.load %[[I]][%[[AT]], %[[FIRST]]]
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: scf.if
// CHECK: scf.for %[[C:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: memref.load %[[V]][%[[AT]], %[[C]]]
// CHECK: arith.addf {{.*}} : f32
// CHECK: memref.store %{{.*}}, %[[O]][%{{.*}}, %[[C]]]
// CHECK: %[[BAD:.*]] = arith.xori %[[VALID]]
// CHECK: exec.fail_if %[[BAD]], "out of range"
func.func @f(%x: memref<10x300xbf16>, %v: memref<4x300xbf16>, %i: memref<4x300xi64, strided<[1, 0]>>, %o: memref<10x300xbf16>) {
  exec.scatter %x, %v at %i -> %o loops [-1, 1] wraps "out of range" name "index_put"
      : memref<10x300xbf16>, memref<4x300xbf16> at memref<4x300xi64, strided<[1, 0]>> -> memref<10x300xbf16>
  return
}

// Every dim of the result has computed positions: one thread adds.
// CHECK: func.func private @
// CHECK: exec.parallel
// CHECK-NOT: exec.parallel
// CHECK: return
func.func @g(%x: memref<10xf32>, %v: memref<4x3xf32>, %i: memref<4x3xi64>, %o: memref<10xf32>) {
  exec.scatter %x, %v at %i -> %o loops [-1] "out of range" name "index_put"
      : memref<10xf32>, memref<4x3xf32> at memref<4x3xi64> -> memref<10xf32>
  return
}
