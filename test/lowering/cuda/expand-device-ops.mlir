// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-expand-device-ops | FileCheck %s
gpu.module @kernels {
  // Five steps of a butterfly among 32 threads, with 16-bit values in registers of 32 bits.
  // CHECK-LABEL: gpu.func @reduce
  // CHECK-COUNT-5: gpu.shuffle {{.*}}xor
  // CHECK-NOT: gpu.shuffle
  // CHECK-NOT: gpu.subgroup_reduce
  gpu.func @reduce(%x: memref<bf16>) kernel {
    %a = memref.load %x[] : memref<bf16>
    %s = gpu.subgroup_reduce maximumf %a : (bf16) -> bf16
    memref.store %s, %x[] : memref<bf16>
    gpu.return
  }
  // Memory of a thread is taken once, not in each iteration.
  // CHECK-LABEL: gpu.func @private
  // CHECK-NEXT: memref.alloca() : memref<4xf32>
  // CHECK: scf.for
  // CHECK-NOT: memref.alloca
  gpu.func @private(%x: memref<f32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %t = memref.alloca() : memref<4xf32>
      %a = memref.load %x[] : memref<f32>
      memref.store %a, %t[%c0] : memref<4xf32>
      %b = memref.load %t[%c0] : memref<4xf32>
      memref.store %b, %x[] : memref<f32>
    }
    gpu.return
  }
  // CHECK-LABEL: gpu.func @subgroup
  // CHECK-NOT: gpu.subgroup_id
  gpu.func @subgroup(%x: memref<?xindex>) kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    %w = gpu.subgroup_id : index
    memref.store %w, %x[%w] : memref<?xindex>
    gpu.return
  }
}
