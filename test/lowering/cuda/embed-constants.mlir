// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants that entries use become parameters of the program, one for each, and those that only the description lacks an error.
// RUN: shard-opt %s --cuda-embed-constants | FileCheck %s
// RUN: sed 's/exec.program = {mesh = {axes = \[\]}, parameters = \[\]}//' %s | not shard-opt --cuda-embed-constants 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: a constant of a program for a device is a parameter, and the module has no 'exec.program' to name it in

// CHECK: exec.program = {{.*}}parameters = [{constant = true, data = dense<[1, 2]> : tensor<2xi32>, layout = "[]", mutable = false, names = ["constant:table"], shape = [2], type = {{[0-9]+}} : i32},
// CHECK-SAME: {constant = true, data = dense<1.000000e+00> : tensor<4xf32>, layout = "[]", mutable = false, names = ["constant:ones"], shape = [4]
// CHECK-NOT: memref.global
module attributes {exec.program = {mesh = {axes = []}, parameters = []}} {
  memref.global "private" constant @table : memref<2xi32> = dense<[1, 2]>
  memref.global "private" constant @ones : memref<4xf32> = dense<1.0>
  // Two uses are one argument; the others keep their numbers.
  // CHECK: func.func @f(%[[Y:.*]]: memref<2xi32> {exec.argument = #exec.argument<output>, exec.index = 0 : i64},
  // CHECK-SAME: %[[Z:.*]]: memref<2xi32> {exec.argument = #exec.argument<output>, exec.index = 1 : i64},
  // CHECK-SAME: %[[X:.*]]: memref<2xi32> {exec.argument = #exec.argument<parameter>, exec.index = 0 : i64})
  func.func @f(%y: memref<2xi32> {exec.argument = #exec.argument<output>}, %z: memref<2xi32> {exec.argument = #exec.argument<output>})
      attributes {exec.arena_bytes = 0 : i64, exec.entry} {
    %x = memref.get_global @table : memref<2xi32>
    %again = memref.get_global @table : memref<2xi32>
    // CHECK: exec.launch @copy(%[[X]], %[[Y]])
    // CHECK: exec.launch @copy(%[[X]], %[[Z]])
    exec.launch @copy(%x, %y) : memref<2xi32>, memref<2xi32>
    exec.launch @copy(%again, %z) : memref<2xi32>, memref<2xi32>
    return
  }
  // Another entry has parameters of the same program.
  // CHECK: func.func @g(%{{.*}}: memref<2xi32> {exec.argument = #exec.argument<output>, exec.index = 0 : i64},
  // CHECK-SAME: memref<4xf32> {exec.argument = #exec.argument<parameter>, exec.index = 1 : i64},
  // CHECK-SAME: memref<2xi32> {exec.argument = #exec.argument<parameter>, exec.index = 0 : i64})
  func.func @g(%y: memref<2xi32> {exec.argument = #exec.argument<output>}) attributes {exec.arena_bytes = 0 : i64, exec.entry} {
    %o = memref.get_global @ones : memref<4xf32>
    %x = memref.get_global @table : memref<2xi32>
    exec.launch @read(%o) : memref<4xf32>
    exec.launch @copy(%x, %y) : memref<2xi32>, memref<2xi32>
    return
  }
  func.func private @copy(%x: memref<2xi32>, %y: memref<2xi32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
    linalg.copy ins(%x : memref<2xi32>) outs(%y : memref<2xi32>)
    return
  }
  func.func private @read(%x: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64>} {
    return
  }
}
