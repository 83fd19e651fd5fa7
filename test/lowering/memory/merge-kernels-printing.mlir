// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels are equal does not depend on how programs are printed.
// RUN: shard-opt %s --exec-merge-kernels | FileCheck %s
// RUN: shard-opt %s --exec-merge-kernels --mlir-print-debuginfo --mlir-use-nameloc-as-prefix | FileCheck %s
// RUN: shard-opt %s --exec-merge-kernels --mlir-elide-elementsattrs-if-larger=1 | FileCheck %s

// CHECK: func.func @forward(
// CHECK: exec.launch @first(
// CHECK: exec.launch @first(
// CHECK: exec.launch @other(
// CHECK-NOT: func.func private @same
func.func @forward(%x: memref<2xf32>, %y: memref<2xf32>) {
  exec.launch @first(%x, %y) name "k" : memref<2xf32>, memref<2xf32>
  exec.launch @same(%y, %x) name "k" : memref<2xf32>, memref<2xf32>
  exec.launch @other(%x, %y) name "k" : memref<2xf32>, memref<2xf32>
  return
}
func.func private @first(%x: memref<2xf32>, %y: memref<2xf32>) attributes {exec.kernel} {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32> loc("one")
  %m = bufferization.to_buffer %c : tensor<2xf32> to memref<2xf32> loc("two")
  memref.copy %m, %y : memref<2xf32> to memref<2xf32>
  return
}
func.func private @same(%x: memref<2xf32>, %y: memref<2xf32>) attributes {exec.kernel} {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32> loc("three")
  %m = bufferization.to_buffer %c : tensor<2xf32> to memref<2xf32> loc("four")
  memref.copy %m, %y : memref<2xf32> to memref<2xf32>
  return
}
func.func private @other(%x: memref<2xf32>, %y: memref<2xf32>) attributes {exec.kernel} {
  %c = arith.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %m = bufferization.to_buffer %c : tensor<2xf32> to memref<2xf32>
  memref.copy %m, %y : memref<2xf32> to memref<2xf32>
  return
}
