// RUN: shard-opt %s --exec-verify-kernels --split-input-file --verify-diagnostics
//
// Kernels for devices, in which launches, threads and ops write one destination.
func.func private @two_launches(%x: memref<64xf32>, %y: memref<64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.load %x[%tx] : memref<64xf32>
    memref.store %a, %y[%tx] : memref<64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.load %x[%tx] : memref<64xf32>
    %b = math.exp %a : f32
    // expected-error@+1 {{kernel 'two_launches' writes argument 1 in a second launch: every destination is written exactly once}}
    memref.store %b, %y[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----
// The same in functions of the device, which came of it.
module attributes {gpu.container_module} {
  func.func private @two_functions(%x: memref<64xf32>, %y: memref<64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<64xf32>, %y : memref<64xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<64xf32>, %y : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %a = memref.load %x[%i] : memref<64xf32>
      // expected-error@+1 {{kernel 'two_functions' writes argument 1 in a second launch}}
      memref.store %a, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
}

// -----
// Two results of one fused kernel in one place, the second by way of a view and a position that is computed again.
func.func private @fused(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %p = arith.muli %bx, %c16 : index
    %i = arith.addi %p, %tx : index
    %a = memref.load %x[%i] : memref<64xf32>
    %flat = memref.cast %y : memref<64xf32> to memref<?xf32>
    memref.store %a, %flat[%i] : memref<?xf32>
    %b = math.exp %a : f32
    %q = arith.muli %c16, %bx : index
    %j = arith.addi %tx, %q : index
    // expected-error@+1 {{kernel 'fused' writes an element of argument 1 twice: every destination is written exactly once}}
    memref.store %b, %flat[%j] : memref<?xf32>
    gpu.terminator
  }
  return
}

// -----
// A vector and an element behind its beginning.
func.func private @vector(%x: memref<64xf32>, %y: memref<64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %i = arith.muli %tx, %c4 : index
    %v = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
    vector.store %v, %y[%i] : memref<64xf32>, vector<4xf32>
    %j = arith.addi %i, %c3 : index
    %a = memref.load %x[%j] : memref<64xf32>
    // expected-error@+1 {{kernel 'vector' writes an element of argument 1 twice}}
    memref.store %a, %y[%j] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----
// What depends on no id of which there are several; and on the thread, but not on the block.
func.func private @races(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %x, %c0 : memref<64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %a = memref.load %x[%tx] : memref<64xf32>
    // expected-error@+1 {{kernel 'races' writes one place of argument 1 in all threads of a block}}
    memref.store %a, %y[%bx] : memref<64xf32>
    // expected-error@+1 {{kernel 'races' writes one place of argument 2 in all blocks of a launch}}
    memref.store %a, %z[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// -----
// What a loop has found out is stored in each of its iterations.
func.func private @loop(%x: memref<64x8xf32>, %y: memref<64xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> f32 {
      %a = memref.load %x[%tx, %k] : memref<64x8xf32>
      %b = arith.addf %sum, %a : f32
      // expected-error@+1 {{kernel 'loop' writes one place of argument 1 in all iterations of a loop}}
      memref.store %b, %y[%tx] : memref<64xf32>
      scf.yield %b : f32
    }
    gpu.terminator
  }
  return
}
