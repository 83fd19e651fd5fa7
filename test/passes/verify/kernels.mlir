// RUN: shard-opt %s --exec-verify-kernels | FileCheck %s
// RUN: shard-opt %s --exec-verify-kernels --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cpu-lower-kernels --cpu-lower-to-llvm | FileCheck %s --check-prefix=LLVM
//
// Kernels that keep their promise, on the way to LLVM's dialect: whether a loop body or a task writes, and after a
// reduction has updated what it began with.
// STATS: exec-verify-kernels
// STATS: 3 kernels-checked

// CHECK-LABEL: func.func private @normalize(
// CHECK-SAME: exec.writes = array<i64: 1, 2, 3>
// Sizes and strides come between: the frame, the location, the source and its size.
// LLVM: llvm.func @normalize({{.*}} attributes {{.*}}exec.writes = array<i64: 4, 6, 8>
func.func private @normalize(%x: memref<?x700xf32>, %y: memref<?x700xf32>, %z: memref<?x700xf32>, %s: memref<?xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 1, 2, 3>} {
  %0 = bufferization.to_tensor %x restrict : memref<?x700xf32> to tensor<?x700xf32>
  %1 = aten.softmax %0 dim 1 : (tensor<?x700xf32>) -> tensor<?x700xf32>
  %2 = aten.sum %1 dim [1] : (tensor<?x700xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?x700xf32>, memref<?x700xf32>) -> ()
  bufferization.materialize_in_destination %1 in restrict writable %z : (tensor<?x700xf32>, memref<?x700xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %s : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

func.func private @total(%x: memref<5xi64>, %n: memref<i64>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<5xi64> to tensor<5xi64>
  %1 = aten.sum %0 dim [0] : (tensor<5xi64>) -> tensor<i64>
  bufferization.materialize_in_destination %1 in restrict writable %n : (tensor<i64>, memref<i64>) -> ()
  return
}

// Rows whose size the run decides have memory of their own, of a size that is read off an argument: that makes it no part
// of the argument.
// LLVM: llvm.func @rows({{.*}} attributes {{.*}}exec.writes = array<i64: 13>
func.func private @rows(%mask: memref<?x?xi8>, %x: memref<?x2x?x?xf32>, %y: memref<?x2x?x?xf32>)
    attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %low = aten.constant dense<0xFF800000> : tensor<f32>
  %0 = bufferization.to_tensor %mask restrict : memref<?x?xi8> to tensor<?x?xi8>
  %1 = builtin.unrealized_conversion_cast %0 : tensor<?x?xi8> to tensor<?x?xi1>
  %2 = bufferization.to_tensor %x restrict : memref<?x2x?x?xf32> to tensor<?x2x?x?xf32>
  %3 = aten.where %1, %2, %low : (tensor<?x?xi1>, tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?x?xf32>
  %4 = aten.softmax %3 dim 3 : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  bufferization.materialize_in_destination %4 in restrict writable %y : (tensor<?x2x?x?xf32>, memref<?x2x?x?xf32>) -> ()
  return
}
