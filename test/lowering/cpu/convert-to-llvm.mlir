// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-convert-to-llvm | FileCheck %s
// RUN: shard-opt %s --cpu-convert-to-llvm --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: cpu-convert-to-llvm
// STATS-DAG: 5 functions
// STATS-DAG: 1 tasks

// What a thread runs: it unpacks the arguments for its part of the range.
// CHECK: llvm.func internal @kernel_body_task(%[[CONTEXT:[^:]*]]: !llvm.ptr, %[[BEGIN:[^:]*]]: i64, %[[END:[^:]*]]: i64)
// CHECK: %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[N:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: llvm.call @kernel_body(%[[X]], %[[N]], %[[BEGIN]], %[[END]])

// A parallel loop is a call of the runtime's service: 64 iterations, 16 at a time, on arguments packed into a struct.
// Services are at 0 in the frame, parallel_for at 32 of them (runtime/abi/shardrt_program.h).
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %[[FRAME:[^:]*]]: !llvm.ptr
// CHECK: %[[PACKED:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, i64)>
// CHECK: llvm.store %{{.*}}, %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: llvm.store %{{.*}}, %{{.*}} : i64, !llvm.ptr
// CHECK: %[[TASK:.*]] = llvm.mlir.addressof @kernel_body_task
// CHECK: llvm.getelementptr %{{.*}}[32]
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[TASK]], %[[PACKED]], %{{.*}}, %{{.*}})

// CHECK: llvm.func @kernel_body({{.*}}llvm.noalias{{.*}}) attributes {{.*}}no_inline
func.func @kernel(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32> {llvm.noalias}, %n: index) attributes {exec.kernel} {
  %count = arith.constant 64 : index
  exec.parallel_call @kernel_body(%x, %n) to %count grain 16 : memref<f32>, index
  return
}
func.func private @kernel_body(%x: memref<f32> {llvm.noalias}, %n: index, %begin: index, %end: index) {
  return
}

// What must not be: the branch, the message as a constant, and the place of the launch.
// CHECK-LABEL: llvm.func @lookup(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr, %[[LOCATION:[^:]*]]: !llvm.ptr, %[[BAD:[^:]*]]: i1
// CHECK: llvm.cond_br %[[BAD]], ^[[FAIL:.*]], ^[[GO:.*]]
// CHECK: ^[[FAIL]]:
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[LOCATION]], %{{.*}})
// CHECK: llvm.br ^[[GO]]
func.func @lookup(%frame: !llvm.ptr, %location: !llvm.ptr, %bad: i1) attributes {exec.kernel} {
  exec.fail_if %bad, "index out of range"
  return
}

// LLVM has no intrinsic for erf of f64: the C library's.
// CHECK-LABEL: llvm.func @library(
// CHECK: llvm.call @erf(%{{.*}}) : (f64) -> f64
func.func @library(%x: f64) -> f64 {
  %0 = math.erf %x : f64
  return %0 : f64
}

// CHECK-LABEL: llvm.func @ceiling(
// CHECK-NOT: arith.
// CHECK: llvm.return
func.func @ceiling(%x: index, %y: index) -> index {
  %0 = arith.ceildivsi %x, %y : index
  return %0 : index
}

// Entries and plans are exec-emit-program's.
// CHECK: func.func @entry() attributes {exec.entry}
func.func @entry() attributes {exec.entry} {
  return
}
