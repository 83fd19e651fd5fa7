// RUN: shard-opt %s --exec-plan-arena | FileCheck %s
//
// A collective in flight reads its inputs and writes its outputs until it is waited for: nothing else may lie there, even
// where no op between start and wait names them. Every buffer here has 1024 bytes.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func private @k(%x: memref<256xf32>, %y: memref<256xf32>) attributes {exec.kernel} {
  return
}

// %in has its last use at the start, and a planner that knew nothing of collectives would put %while there.
// After the wait its memory is free: %after lies at one of the two places.
// CHECK-LABEL: func.func @waited(
// CHECK-SAME: exec.arena_bytes = 3072 : i64
func.func @waited(%x: memref<256xf32>) attributes {exec.entry} {
  // CHECK: exec.alloc at [[IN:[0-9]+]] :
  %in = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %in) : memref<256xf32>, memref<256xf32>
  // CHECK-NOT: exec.alloc at [[IN]] :
  // CHECK: exec.alloc at [[OUT:[0-9]+]] :
  // CHECK: exec.start
  %out = exec.alloc : memref<256xf32>
  %t = exec.start all_reduce sum over #tp (%in : memref<256xf32>) -> (%out : memref<256xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 256>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // CHECK-NOT: exec.alloc at [[IN]] :
  // CHECK-NOT: exec.alloc at [[OUT]] :
  // CHECK: exec.wait
  %while = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %while) : memref<256xf32>, memref<256xf32>
  exec.launch @k(%while, %x) : memref<256xf32>, memref<256xf32>
  exec.wait %t
  // CHECK-NOT: exec.alloc at [[OUT]] :
  %after = exec.alloc : memref<256xf32>
  exec.launch @k(%out, %after) : memref<256xf32>, memref<256xf32>
  exec.launch @k(%after, %x) : memref<256xf32>, memref<256xf32>
  return
}

// Without a wait it is in flight until the end.
// CHECK-LABEL: func.func @not_waited(
// CHECK-SAME: exec.arena_bytes = 3072 : i64
func.func @not_waited(%x: memref<256xf32>) attributes {exec.entry} {
  %in = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %in) : memref<256xf32>, memref<256xf32>
  %out = exec.alloc : memref<256xf32>
  %t = exec.start all_reduce sum over #tp (%in : memref<256xf32>) -> (%out : memref<256xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 256>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %while = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %while) : memref<256xf32>, memref<256xf32>
  %later = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %later) : memref<256xf32>, memref<256xf32>
  return
}

// One that runs to its end needs its operands only there.
// CHECK-LABEL: func.func @blocking(
// CHECK-SAME: exec.arena_bytes = 2048 : i64
func.func @blocking(%x: memref<256xf32>) attributes {exec.entry} {
  %in = exec.alloc : memref<256xf32>
  exec.launch @k(%x, %in) : memref<256xf32>, memref<256xf32>
  %out = exec.alloc : memref<256xf32>
  exec.collective all_reduce sum over #tp (%in : memref<256xf32>) -> (%out : memref<256xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 256>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  %after = exec.alloc : memref<256xf32>
  exec.launch @k(%out, %after) : memref<256xf32>, memref<256xf32>
  return
}
