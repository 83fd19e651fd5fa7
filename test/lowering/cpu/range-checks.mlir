// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cpu-tile-kernels --split-input-file | FileCheck %s
//
// Indices are looked at before anything is read at them: one bad index, and the kernel reads nothing.

// CHECK-LABEL: func.func private @lookup(
// CHECK-SAME: %[[W:.*]]: memref<10x8xf32>, %[[I:.*]]: memref<3x5xi64>
// CHECK-SAME: attributes {exec.kernel}
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[TEN:.*]] = arith.constant 10 : index
// CHECK-DAG: %[[LOW:.*]] = arith.index_cast %[[ZERO]] : index to i64
// CHECK-DAG: %[[HIGH:.*]] = arith.index_cast %[[TEN]] : index to i64
// CHECK-NOT: memref.load %[[W]]
// CHECK: %[[INDEX:.*]] = memref.load %[[I]]
// CHECK: arith.cmpi sge, %[[INDEX]], %[[LOW]]
// CHECK: arith.cmpi slt, %[[INDEX]], %[[HIGH]]
// CHECK: exec.fail_if %{{.*}}, "index out of range in aten.embedding (dim 0 of the table, of size 10)"
// CHECK: scf.if
// CHECK: memref.load %[[W]]
func.func private @lookup(%w: memref<10x8xf32>, %i: memref<3x5xi64>, %y: memref<3x5x8xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<10x8xf32> to tensor<10x8xf32>
  %1 = bufferization.to_tensor %i restrict : memref<3x5xi64> to tensor<3x5xi64>
  %2 = aten.embedding %0 at %1 : (tensor<10x8xf32>, tensor<3x5xi64>) -> tensor<3x5x8xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<3x5x8xf32>, memref<3x5x8xf32>) -> ()
  return
}

// -----
// A kernel that reads at computed positions of its own making cannot fail.
// CHECK-LABEL: func.func private @add(
// CHECK-SAME: attributes {exec.kernel}
// CHECK-NOT: exec.fail_if
// CHECK: return
func.func private @add(%x: memref<3x5xf32>, %y: memref<3x5xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<3x5xf32> to tensor<3x5xf32>
  %1 = aten.add %0, %0 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<3x5xf32>, memref<3x5xf32>) -> ()
  return
}
