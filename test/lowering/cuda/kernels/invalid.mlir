// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cuda-tile-kernels --split-input-file --verify-diagnostics

// Everything that cannot become a launch is told at once.
func.func private @sizes(%x: memref<?xf32>, %y: memref<?xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %0 = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  %n = memref.dim %x, %c0 : memref<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  // expected-error@+1 {{asks for a size that no argument of the kernel has}}
  %m = tensor.dim %e, %c0 : tensor<?xf32>
  %1 = linalg.exp ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  // expected-error@+1 {{asks for a size that no argument of the kernel has}}
  %k = tensor.dim %1, %c0 : tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
