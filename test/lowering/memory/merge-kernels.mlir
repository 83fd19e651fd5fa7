// RUN: shard-opt %s --exec-merge-kernels --pass-statistics 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=COUNT < %t

// COUNT-DAG: 5 {{.*}}kernels
// COUNT-DAG: 2 {{.*}}merged

// CHECK-LABEL: func.func @entry(
func.func @entry(%x: memref<4xf32>, %y: memref<8xf32>) attributes {exec.entry} {
  // Names and locations make no difference.
  // CHECK: exec.launch @a(%{{.*}}) name "first"
  exec.launch @a(%x) name "first" : memref<4xf32>
  // CHECK: exec.launch @a(%{{.*}}) name "second"
  exec.launch @b(%x) name "second" : memref<4xf32>
  // CHECK: exec.launch @a(%{{.*}}) name "third"
  exec.launch @c(%x) name "third" : memref<4xf32>
  // A constant or a shape does.
  // CHECK: exec.launch @constant(
  exec.launch @constant(%x) : memref<4xf32>
  // CHECK: exec.launch @shape(
  exec.launch @shape(%y) : memref<8xf32>
  return
}
// CHECK: func.func private @a(
// CHECK-NOT: func.func private @b(
// CHECK-NOT: func.func private @c(
// CHECK: func.func private @constant(
// CHECK: func.func private @shape(
// CHECK: func.func private @helper(
func.func private @a(%x: memref<4xf32>) attributes {exec.kernel} {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  return
}
func.func private @b(%y: memref<4xf32>) attributes {exec.kernel} {
  %one = arith.constant 1.0 : f32 loc("elsewhere")
  linalg.fill ins(%one : f32) outs(%y : memref<4xf32>)
  return
}
func.func private @c(%x: memref<4xf32>) attributes {exec.kernel} {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  return
}
func.func private @constant(%x: memref<4xf32>) attributes {exec.kernel} {
  %c = arith.constant 2.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  return
}
func.func private @shape(%x: memref<8xf32>) attributes {exec.kernel} {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<8xf32>)
  return
}
// Equal to @a, but no kernel: somebody else's.
func.func private @helper(%x: memref<4xf32>) {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  return
}
