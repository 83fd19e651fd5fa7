// RUN: shard-opt %s --exec-plan-arena | FileCheck %s

func.func private @k(%x: memref<256xf32>, %y: memref<256xf32>) attributes {exec.kernel} {
  return
}

// Each buffer has 1024 bytes, and at most two live at once: the third one lies where the first one was.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: exec.arena_bytes = 2048 : i64
func.func @chain(%x: memref<256xf32>) attributes {exec.entry} {
  // CHECK: %[[A:.*]] = exec.alloc at [[FIRST:[0-9]+]] : memref<256xf32>
  %a = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %a) : memref<256xf32>, memref<256xf32>
  // CHECK-NOT: exec.alloc at [[FIRST]] :
  // CHECK: exec.launch @k(%[[A]], %{{.*}})
  %b = exec.alloc : memref<256xf32>
  exec.launch @k(%a, %b) : memref<256xf32>, memref<256xf32>
  // CHECK: exec.alloc at [[FIRST]] :
  %c = exec.alloc : memref<256xf32>
  exec.launch @k(%b, %c) : memref<256xf32>, memref<256xf32>
  exec.launch @k(%c, %x) : memref<256xf32>, memref<256xf32>
  return
}

// What reads a view reads the buffer: it lives on, so all three live at once.
// CHECK-LABEL: func.func @view(
// CHECK-SAME: exec.arena_bytes = 3072 : i64
func.func @view(%x: memref<256xf32>) attributes {exec.entry} {
  %a = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %a) : memref<256xf32>, memref<256xf32>
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [256], strides: [1] : memref<256xf32> to memref<256xf32>
  %b = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %b) : memref<256xf32>, memref<256xf32>
  %c = exec.alloc : memref<256xf32>
  exec.launch @k(%b, %c) : memref<256xf32>, memref<256xf32>
  exec.launch @k(%c, %v) : memref<256xf32>, memref<256xf32>
  return
}

// A making of a view, on the other hand, is no use.
// CHECK-LABEL: func.func @late_view(
// CHECK-SAME: exec.arena_bytes = 1024 : i64
func.func @late_view(%x: memref<256xf32>) attributes {exec.entry} {
  %a = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %a) : memref<256xf32>, memref<256xf32>
  %b = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %b) : memref<256xf32>, memref<256xf32>
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [256], strides: [1] : memref<256xf32> to memref<256xf32>
  return
}

func.func private @bytes(%x: memref<1xi8>, %y: memref<17xf32>, %z: memref<0x4xf32>) attributes {exec.kernel} {
  return
}

// Offsets are multiples of 64: 1 byte takes 64, 68 bytes take 128, and nothing takes nothing.
// CHECK-LABEL: func.func @alignment(
// CHECK-SAME: exec.arena_bytes = 192 : i64
// CHECK-DAG: exec.alloc at {{0|128}} : memref<1xi8>
// CHECK-DAG: exec.alloc at {{0|64}} : memref<17xf32>
// CHECK-DAG: exec.alloc at {{[0-9]+}} : memref<0x4xf32>
func.func @alignment() attributes {exec.entry} {
  %a = exec.alloc : memref<1xi8>
  %b = exec.alloc : memref<17xf32>
  %c = exec.alloc : memref<0x4xf32>
  exec.launch @bytes(%a, %b, %c) : memref<1xi8>, memref<17xf32>, memref<0x4xf32>
  return
}

// What nobody uses is not there.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: exec.arena_bytes = 0 : i64
// CHECK-NEXT: return
func.func @unused() attributes {exec.entry} {
  %a = exec.alloc : memref<256xf32>
  return
}

// Functions that are no entries are left alone.
// CHECK-LABEL: func.func @other(
// CHECK-NEXT: exec.alloc : memref<256xf32>
func.func @other(%x: memref<256xf32>) {
  %a = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %a) : memref<256xf32>, memref<256xf32>
  return
}
