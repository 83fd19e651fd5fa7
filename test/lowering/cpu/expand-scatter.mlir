// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-expand-scatter | FileCheck %s

// The tensor is copied by rows on several threads; then elements are added one after the other, those in range.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: exec.launch @[[K:.*]](%arg0, %arg1, %arg2, %arg3) name "index_put"
// CHECK-NOT: exec.scatter_add
// CHECK: func.func private @[[K]](%[[X:.*]]: memref<10x8xbf16>, %[[V:.*]]: memref<4x8xbf16>, %[[I:.*]]: memref<4x8xi64>, %[[O:.*]]: memref<10x8xbf16>) attributes {exec.kernel, exec.writes = array<i64: 3>}
// CHECK: exec.parallel %[[ROW:.*]] to
// CHECK: memref.load %[[X]][%[[ROW]],
// CHECK: memref.store %{{.*}}, %[[O]][%[[ROW]],
// CHECK: %[[VALID:.*]] = scf.for
// CHECK-NOT: exec.parallel
// CHECK: memref.load %[[I]]
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: scf.if
// CHECK: arith.addf {{.*}} : f32
// CHECK: memref.store %{{.*}}, %[[O]]
// CHECK: %[[BAD:.*]] = arith.xori %[[VALID]]
// CHECK: exec.fail_if %[[BAD]], "out of range"
func.func @f(%x: memref<10x8xbf16>, %v: memref<4x8xbf16>, %i: memref<4x8xi64>, %o: memref<10x8xbf16>) {
  exec.scatter_add %x, %v at %i -> %o loops [-1, 1] wraps "out of range" name "index_put"
      : memref<10x8xbf16>, memref<4x8xbf16> at memref<4x8xi64> -> memref<10x8xbf16>
  return
}
