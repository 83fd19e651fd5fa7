// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel in device-launch form, down to LLVM's dialect for host and device.
// RUN: shard-opt %s --cuda-outline-kernels | FileCheck %s --check-prefix=OUTLINE
// RUN: shard-opt %s --cuda-lower-to-llvm | FileCheck %s

// OUTLINE-LABEL: func.func private @gather(
// OUTLINE-SAME: %[[FRAME:.*]]: !llvm.ptr, %[[LOCATION:.*]]: !llvm.ptr, %{{.*}}: memref<f32> {llvm.noalias}, %{{.*}}: index, %{{.*}}: memref<i64> {llvm.noalias}
// OUTLINE: %[[THIS:.*]] = exec.frame : !llvm.ptr
// OUTLINE: exec.scratch 0 of %[[THIS]](%{{.*}}) : !llvm.ptr -> memref<?xf32>
// OUTLINE: exec.fail_if %{{.*}}, "more elements than a launch has blocks for"
// OUTLINE: gpu.launch_func @kernels::@gather blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in
// OUTLINE: gpu.launch_func @kernels::@gather_0
// OUTLINE-LABEL: func.func private @share(
// OUTLINE: gpu.launch_func @kernels::@share blocks in (%{{.*}}) threads in (%{{.*}}) dynamic_shared_memory_size %{{.*}} args(
// OUTLINE: gpu.module @kernels
// OUTLINE-LABEL: gpu.func @gather(
// OUTLINE-SAME: %{{.*}}: memref<f32> {llvm.noalias, llvm.readonly}
// OUTLINE-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>}
// OUTLINE-LABEL: gpu.func @share(
// OUTLINE: %[[ALL:.*]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// OUTLINE: memref.view %[[ALL]]

// The host asks the runtime for memory, and for the two launches of the kernel.
// CHECK-LABEL: llvm.func @gather(
// CHECK-SAME: %[[FRAME:[^:]*]]: !llvm.ptr, %[[LOCATION:[^:]*]]: !llvm.ptr,
// CHECK-SAME: exec.kernel
// CHECK: llvm.store %[[LOCATION]], %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.func @gather(%[[WORD:.*]]: !llvm.ptr, %[[NUMBER:.*]]: i32, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}
// CHECK-SAME: exec.messages = ["index out of range"]
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK: llvm.zext %[[NUMBER]] : i32 to i64
// CHECK: llvm.cmpxchg %[[WORD]], %{{.*}}, %{{.*}} monotonic monotonic : !llvm.ptr, i64
// CHECK: llvm.func @gather_0(
// CHECK: llvm.call @__nv_expf(
// CHECK: llvm.func @share(
// CHECK-SAME: exec.shared_bytes = 65664 : i64

// The first kernel copies with a range check, and has a temporary in the device's memory.

func.func private @gather(%x: memref<?xf32>, %at: memref<?xi64>, %y: memref<?xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  %rows = memref.dim %x, %c0 : memref<?xf32>
  %temporary = memref.alloc(%n) : memref<?xf32>
  %blocks = arith.ceildivui %n, %c128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %first = arith.muli %bx, %c128 : index
    %i = arith.addi %first, %tx : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %position = memref.load %at[%i] : memref<?xi64>
      %index = arith.index_cast %position : i64 to index
      %bad = arith.cmpi uge, %index, %rows : index
      exec.fail_if %bad, "index out of range"
      %zero = arith.constant 0.0 : f32
      %a = scf.if %bad -> f32 {
        scf.yield %zero : f32
      } else {
        %b = memref.load %x[%index] : memref<?xf32>
        scf.yield %b : f32
      }
      memref.store %a, %temporary[%i] : memref<?xf32>
    }
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %first = arith.muli %bx, %c128 : index
    %i = arith.addi %first, %tx : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %a = memref.load %temporary[%i] : memref<?xf32>
      %b = math.exp %a : f32
      memref.store %b, %y[%i] : memref<?xf32>
    }
    gpu.terminator
  }
  return
}

// What more than 48 KiB share is dynamic.

func.func private @share(%x: memref<256xf32>, %y: memref<256xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1)
             workgroup(%s: memref<16384xf32, #gpu.address_space<workgroup>>, %one: memref<1xf32, #gpu.address_space<workgroup>>) {
    %a = memref.load %x[%tx] : memref<256xf32>
    memref.store %a, %s[%tx] : memref<16384xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = arith.subi %c256, %tx : index
    %j = arith.subi %last, %c1 : index
    %b = memref.load %s[%j] : memref<16384xf32, #gpu.address_space<workgroup>>
    %sum = gpu.subgroup_reduce add %b : (f32) -> f32
    memref.store %sum, %y[%tx] : memref<256xf32>
    gpu.terminator
  }
  return
}
