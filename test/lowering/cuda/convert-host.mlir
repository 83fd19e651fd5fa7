// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-convert-host | FileCheck %s
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<f32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      gpu.return
    }
    gpu.func @second(%x: memref<f32>, %n: index, %s: f16) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      gpu.return
    }
  }
  // A launch of kernel 1 with three parameters, of their own sizes: shardrt_launch has the location at byte 0, the parameters
  // at 8, the kernel at 16 and the grid from 20 on.
  // CHECK: llvm.func @k(%[[FRAME:[^:]*]]: !llvm.ptr, %[[LOCATION:[^:]*]]: !llvm.ptr, %[[X:[^:]*]]: !llvm.ptr, %[[N:[^:]*]]: i64, %[[S:[^:]*]]: f16)
  // CHECK-DAG: %[[LAUNCH:.*]] = llvm.alloca %{{.*}} x !llvm.array<4 x i64> {alignment = 8 : i64}
  // CHECK-DAG: %[[LIST:.*]] = llvm.alloca %{{.*}} x !llvm.array<3 x ptr> {alignment = 8 : i64}
  // CHECK-DAG: %[[X_AT:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
  // CHECK-DAG: %[[N_AT:.*]] = llvm.alloca %{{.*}} x i64 {
  // CHECK-DAG: %[[S_AT:.*]] = llvm.alloca %{{.*}} x f16
  // CHECK: llvm.store %{{.*}}, %[[X_AT]] : !llvm.ptr, !llvm.ptr
  // CHECK: llvm.store %[[X_AT]], %{{.*}} : !llvm.ptr, !llvm.ptr
  // CHECK: llvm.store %[[N]], %[[N_AT]] : i64, !llvm.ptr
  // CHECK: llvm.store %[[S]], %[[S_AT]] : f16, !llvm.ptr
  // CHECK: %[[LOCATION_AT:.*]] = llvm.getelementptr %[[LAUNCH]][0]
  // CHECK: llvm.store %[[LOCATION]], %[[LOCATION_AT]] : !llvm.ptr, !llvm.ptr
  // CHECK: %[[LIST_AT:.*]] = llvm.getelementptr %[[LAUNCH]][8]
  // CHECK: llvm.store %[[LIST]], %[[LIST_AT]] : !llvm.ptr, !llvm.ptr
  // CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK: %[[KERNEL_AT:.*]] = llvm.getelementptr %[[LAUNCH]][16]
  // CHECK: llvm.store %[[ONE]], %[[KERNEL_AT]] : i32, !llvm.ptr
  // CHECK: %[[BLOCKS:.*]] = llvm.trunc %[[N]] : i64 to i32
  // CHECK: %[[GRID_AT:.*]] = llvm.getelementptr %[[LAUNCH]][20]
  // CHECK: llvm.store %[[BLOCKS]], %[[GRID_AT]] : i32, !llvm.ptr
  // CHECK: llvm.getelementptr %[[LAUNCH]][24]
  // CHECK: llvm.getelementptr %[[LAUNCH]][28]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %[[LAUNCH]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
  // CHECK: llvm.return
  func.func private @k(%frame: !llvm.ptr, %location: !llvm.ptr, %x: memref<f32>, %n: index, %s: f16)
      attributes {exec.kernel, exec.outlined, exec.writes = array<i64: 2>} {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @kernels::@second blocks in (%n, %c1, %c1) threads in (%c256, %c1, %c1) args(%x : memref<f32>, %n : index, %s : f16)
    return
  }
}
