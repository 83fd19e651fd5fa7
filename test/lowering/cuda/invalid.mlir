// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What cannot be launched on a device is refused by name, all at once.
// RUN: shard-opt %s --split-input-file --verify-diagnostics --cuda-lower-to-llvm

func.func private @threads(%x: memref<8xf32>, %n: index) attributes {exec.kernel, exec.writes = array<i64: 0>} {
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  // expected-error @+1 {{kernel 'threads' has 2048 threads in a block, of at most 1024}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c2048, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  // expected-error @+1 {{kernel 'threads' has blocks of unknown size: block sizes are constants of at least 1}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

func.func private @shared(%x: memref<8xf32>) attributes {exec.kernel, exec.writes = array<i64: 0>} {
  %c1 = arith.constant 1 : index
  %c70000 = arith.constant 70000 : index
  // expected-error @+2 {{kernel 'shared' needs 262144 bytes of shared memory in a block, of at most 101376}}
  // expected-error @+1 {{kernel 'shared' has a grid of 70000 blocks in a dim, of at most 65535}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c70000, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             workgroup(%s: memref<65536xf32, #gpu.address_space<workgroup>>) {
    gpu.terminator
  }
  return
}

// -----

func.func private @leftover(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{kernel 'leftover' has 'linalg.exp', which cannot be compiled for CUDA}}
    linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
    gpu.terminator
  }
  return
}

func.func private @other(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{kernel 'other' has 'linalg.copy', which cannot be compiled for CUDA}}
    linalg.copy ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
    gpu.terminator
  }
  return
}

// -----

// expected-error @+1 {{the target's chip: }}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cuda" = #dlti.target_device_spec<"chip" = "sm_9">>} {
  func.func private @k(%x: memref<8xf32>) attributes {exec.kernel, exec.writes = array<i64: 0>} {
    return
  }
}
