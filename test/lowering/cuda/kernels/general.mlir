// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// A copy of an argument, with no op at all, to a place in a longer row.
// CHECK-LABEL: func.func private @copy(
// CHECK: gpu.launch
// CHECK: vector.load
// CHECK: vector.store
// CHECK: return
func.func private @copy(%x: memref<6x40xf32>, %y: memref<6x40xf32, strided<[80, 1]>>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<6x40xf32>, memref<6x40xf32, strided<[80, 1]>>) -> ()
  return
}

// -----
// One value in two places, and an argument in a third: one launch.
// CHECK-LABEL: func.func private @twice(
// CHECK-COUNT-1: gpu.launch
// CHECK-COUNT-3: vector.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @twice(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %w: memref<64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64xf32> to tensor<64xf32>
  %1 = aten.exp %0 : (tensor<64xf32>) -> tensor<64xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  bufferization.materialize_in_destination %1 in restrict writable %z : (tensor<64xf32>, memref<64xf32>) -> ()
  bufferization.materialize_in_destination %0 in restrict writable %w : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// -----
// Constants and positions are written without any memory being read.
// CHECK-LABEL: func.func private @arange(
// CHECK: gpu.launch
// CHECK-NOT: memref.load
// CHECK: vector.store
// CHECK: return
func.func private @arange(%y: memref<64xf32>) attributes {exec.kernel} {
  %0 = aten.arange [2 : 130 : 2] f32 : tensor<64xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}
