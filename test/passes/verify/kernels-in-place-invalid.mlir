// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-verify-kernels --split-input-file --verify-diagnostics
//
// In place: an element of the new value is computed from that of the old one at the same place.
#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
func.func private @transposed_in_place(%x: memref<4x4xf32>) attributes {exec.kernel, exec.in_place = array<i64: 0>, exec.writes = array<i64: 0>} {
  %0 = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %1 = tensor.empty() : tensor<4x4xf32>
  // expected-error@+1 {{kernel 'transposed_in_place' computes an element from another one of argument 0, which it writes in place}}
  %2 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x4xf32>) outs(%1 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.negf %a : f32
    linalg.yield %3 : f32
  } -> tensor<4x4xf32>
  bufferization.materialize_in_destination %2 in restrict writable %x : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----
#id = affine_map<(d0) -> (d0)>
func.func private @read_behind(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.in_place = array<i64: 0>, exec.writes = array<i64: 0, 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  %1 = tensor.empty() : tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %3 = arith.negf %a : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  // expected-error@+1 {{kernel 'read_behind' may read after the write argument 0, which it writes in place}}
  %4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %5 = arith.mulf %a, %a : f32
    linalg.yield %5 : f32
  } -> tensor<4xf32>
  bufferization.materialize_in_destination %2 in restrict writable %x : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %4 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
// expected-error@below {{kernel 'only_read' names argument 0 with 'exec.in_place', which it does not write}}
func.func private @only_read(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.in_place = array<i64: 0>, exec.writes = array<i64: 1>} {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
