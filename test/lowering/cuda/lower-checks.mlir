// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-lower-checks | FileCheck %s
// Messages are numbered in each kernel, and equal ones have one number. A kernel without checks gets the two parameters, too.
gpu.module @kernels {
  // CHECK: gpu.func @k(%[[WORD:.*]]: !llvm.ptr, %[[LAUNCH:.*]]: i32, %[[BAD:.*]]: i1, %{{.*}}: i1)
  // CHECK-SAME: exec.messages = ["first", "second"]
  gpu.func @k(%bad: i1, %worse: i1) kernel {
    // CHECK: scf.if %[[BAD]]
    // CHECK: arith.extui %[[LAUNCH]] : i32 to i64
    // CHECK: llvm.cmpxchg %[[WORD]], %{{.*}}, %{{.*}} monotonic monotonic : !llvm.ptr, i64
    exec.fail_if %bad, "first"
    // CHECK: scf.if
    // CHECK: %[[NUMBER:.*]] = arith.constant 1 : i64
    // CHECK: llvm.cmpxchg
    exec.fail_if %worse, "second"
    // CHECK: scf.if
    // CHECK: llvm.cmpxchg
    exec.fail_if %worse, "first"
    gpu.return
  }
  // CHECK: gpu.func @none(%{{.*}}: !llvm.ptr, %{{.*}}: i32, %{{.*}}: memref<f32>) kernel {
  gpu.func @none(%x: memref<f32>) kernel {
    gpu.return
  }
}
