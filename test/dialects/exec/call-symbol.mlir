// Functions that users have registered, in the host program.
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @round_trip
func.func @round_trip(%x: memref<10x3xf32>, %i: memref<10x3xi64>) {
  // CHECK: exec.call_symbol "knn"(%{{.*}}, %{{.*}}) -> (%{{.*}}) types [f32, f32, i64] library "geometry.so" name "geometry.knn" {arguments = {k = 3 : i64}}
  exec.call_symbol "knn"(%x, %x) -> (%i) types [f32, f32, i64] library "geometry.so" name "geometry.knn" {arguments = {k = 3 : i64}}
    : (memref<10x3xf32>, memref<10x3xf32>) -> (memref<10x3xi64>)
  return
}

// -----

func.func @types(%x: memref<4xf32>) {
  // expected-error @+1 {{has 1 element types for 2 tensors}}
  exec.call_symbol "f"(%x) -> (%x) types [f32] : (memref<4xf32>) -> (memref<4xf32>)
  return
}

// -----

func.func @unknown(%x: memref<4xi16>) {
  // expected-error @+1 {{has a tensor of ui16, which functions in C cannot have}}
  exec.call_symbol "f"(%x) -> (%x) types [ui16, ui16] : (memref<4xi16>) -> (memref<4xi16>)
  return
}

// -----

func.func @dense(%x: memref<4x4xf32, strided<[1, 4]>>) {
  // expected-error @+1 {{which is not dense}}
  exec.call_symbol "f"(%x) -> (%x) types [f32, f32] : (memref<4x4xf32, strided<[1, 4]>>) -> (memref<4x4xf32, strided<[1, 4]>>)
  return
}
