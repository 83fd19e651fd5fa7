// RUN: shard-opt %s --exec-verify-kernels -o /dev/null
// RUN: shard-opt %s --exec-verify-kernels --pass-statistics -o /dev/null 2>&1 | FileCheck %s
//
// Parts of destinations that launches, threads and ops write, each element once.
// CHECK: 3 kernels-checked
// CHECK: 1 parts-unproven

// Whole vectors and what is behind them, in branches of one condition, of its opposite, and of other numbers of the thread.
func.func private @branches(%x: memref<67xf32>, %y: memref<67xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %i = arith.muli %tx, %c4 : index
    %isWhole = arith.cmpi ult, %tx, %c16 : index
    scf.if %isWhole {
      %v = vector.load %x[%i] : memref<67xf32>, vector<4xf32>
      vector.store %v, %y[%i] : memref<67xf32>, vector<4xf32>
    }
    %isRest = arith.xori %isWhole, %true : i1
    %isFirst = arith.cmpi eq, %tx, %c16 : index
    %isThird = arith.cmpi eq, %tx, %c32 : index
    %a = memref.load %x[%c0] : memref<67xf32>
    scf.if %isRest {
      scf.if %isFirst {
        memref.store %a, %y[%i] : memref<67xf32>
        %j = arith.addi %i, %c1 : index
        memref.store %a, %y[%j] : memref<67xf32>
      } else {
        scf.if %isThird {
          memref.store %a, %y[%i] : memref<67xf32>
        }
      }
    }
    gpu.terminator
  }
  return
}

// Launches of which conditions of the host let one run; one thread stores what a block has found out.
func.func private @host(%x: memref<?xf32>, %y: memref<f32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %isLong = arith.cmpi ugt, %n, %c32 : index
  scf.if %isLong {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %a = memref.load %x[%tx] : memref<?xf32>
      %isFirst = arith.cmpi eq, %tx, %c0 : index
      scf.if %isFirst {
        memref.store %a, %y[] : memref<f32>
      }
      gpu.terminator
    }
  } else {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %a = memref.load %x[%c0] : memref<?xf32>
      memref.store %a, %y[] : memref<f32>
      gpu.terminator
    }
  }
  return
}

// Positions that a loop moves through, and others that cannot be compared with them. A later launch may add to what is there.
func.func private @loops(%x: memref<64x8xf32>, %y: memref<64x9xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    scf.for %k = %c0 to %c8 step %c1 {
      %a = memref.load %x[%tx, %k] : memref<64x8xf32>
      memref.store %a, %y[%tx, %k] : memref<64x9xf32>
    }
    %b = memref.load %x[%tx, %c0] : memref<64x8xf32>
    memref.store %b, %y[%tx, %c8] : memref<64x9xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.load %y[%tx, %c0] : memref<64x9xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%tx, %c0] : memref<64x9xf32>
    gpu.terminator
  }
  return
}
