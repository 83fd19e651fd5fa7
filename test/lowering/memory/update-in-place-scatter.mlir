// RUN: shard-opt %s --exec-update-in-place --exec-verify-buffers --split-input-file | FileCheck %s
// RUN: shard-opt %s --exec-update-in-place --cpu-expand-scatter --split-input-file | FileCheck %s --check-prefix=CPU

// Rows that are written into a state: nothing else of it is copied, and the old value is read before.
// CHECK-LABEL: func.func @rows
// CHECK: exec.launch @copy(%arg0, %arg4)
// CHECK-NEXT: exec.commit
// CHECK-NEXT: exec.scatter %arg3, %arg1 at %arg2 -> %arg3
// CHECK-NEXT: exec.launch @copy(%arg3, %arg5)

// The kernel has no argument for the source, and no loop that copies.
// CPU-LABEL: func.func @rows
// CPU: exec.launch @[[KERNEL:scatter_add[_0-9]*]](%arg1, %arg2, %arg3) name "index_put"
// CPU: func.func private @[[KERNEL]](%arg0: memref<2x8xf32>, %arg1: memref<2x8xi64, {{.*}}>, %arg2: memref<16x8xf32>)
// CPU-SAME: exec.in_place = array<i64: 2>
// CPU-SAME: exec.writes = array<i64: 2>
func.func @rows(%state: memref<16x8xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<2x8xf32> {exec.argument = #exec.argument<input>},
                %at: memref<2x8xi64, strided<[1, 0]>> {exec.argument = #exec.argument<input>},
                %new: memref<16x8xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                %old: memref<16x8xf32> {exec.argument = #exec.argument<output>},
                %same: memref<16x8xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  exec.scatter %state, %x at %at -> %new loops [-1, 1] "index out of range" name "index_put"
      : memref<16x8xf32>, memref<2x8xf32> at memref<2x8xi64, strided<[1, 0]>> -> memref<16x8xf32>
  exec.launch @copy(%new, %same) : memref<16x8xf32>, memref<16x8xf32>
  exec.launch @copy(%state, %old) : memref<16x8xf32>, memref<16x8xf32>
  return
}
func.func private @copy(%a: memref<16x8xf32>, %b: memref<16x8xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  memref.copy %a, %b : memref<16x8xf32> to memref<16x8xf32>
  return
}

// -----

// The values are rows of the old value: positions that were written would be read.
// CHECK-LABEL: func.func @of_itself
// CHECK: %[[APART:.*]] = exec.alloc
// CHECK: exec.scatter %arg0, %{{.*}} at %arg1 -> %[[APART]]
func.func @of_itself(%state: memref<16x8xf32> {exec.argument = #exec.argument<parameter>},
                     %at: memref<2x8xi64, strided<[1, 0]>> {exec.argument = #exec.argument<input>},
                     %new: memref<16x8xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry} {
  %x = memref.reinterpret_cast %state to offset: [8], sizes: [2, 8], strides: [8, 1] : memref<16x8xf32> to memref<2x8xf32, strided<[8, 1], offset: 8>>
  exec.scatter %state, %x at %at -> %new loops [-1, 1] "index out of range" name "index_put"
      : memref<16x8xf32>, memref<2x8xf32, strided<[8, 1], offset: 8>> at memref<2x8xi64, strided<[1, 0]>> -> memref<16x8xf32>
  return
}
