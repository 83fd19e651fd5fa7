// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops | FileCheck %s
// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: aten-to-linalg
// STATS-DAG: 5 converted

// One reader: one loop.
// CHECK-LABEL: func.func private @chain(
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NEXT: math.tanh
// CHECK-NEXT: linalg.yield
// CHECK-NOT: linalg.generic
// CHECK: return
func.func private @chain(%x: memref<64xf32>, %y: memref<64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64xf32> to tensor<64xf32>
  %1 = aten.exp %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = aten.tanh %1 : (tensor<64xf32>) -> tensor<64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// Two readers: computed once, and kept.
// CHECK-LABEL: func.func private @shared(
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NEXT: linalg.yield
// CHECK-NOT: math.exp
// CHECK: return
func.func private @shared(%x: memref<8x64xf32>, %y: memref<8x1xf32>, %z: memref<8x64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<8x64xf32> to tensor<8x64xf32>
  %1 = aten.exp %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = aten.sum %1 dim [1] keepdim : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %3 = aten.tanh %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<8x1xf32>, memref<8x1xf32>) -> ()
  bufferization.materialize_in_destination %3 in restrict writable %z : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
  return
}
