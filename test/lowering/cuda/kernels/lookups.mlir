// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// Rows of a table: eight neighbours of a row are read together. Their position is checked once; where it is out of range the failure is
// recorded, nothing is read, and the row is 0.
// CHECK-LABEL: func.func private @embedding(
// CHECK-SAME: %[[W:.*]]: memref<?x8xbf16>, %[[I:.*]]: memref<5xi64>, %[[Y:.*]]: memref<5x8xbf16>)
// CHECK: %[[ROWS:.*]] = memref.dim %[[W]]
// CHECK: gpu.launch
// CHECK: scf.if
// CHECK: %[[INDEX:.*]] = memref.load %[[I]]
// CHECK: %[[HIGH:.*]] = arith.index_cast %[[ROWS]] : index to i64
// CHECK: %[[ABOVE:.*]] = arith.cmpi sge, %[[INDEX]], %{{.*}}
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[INDEX]], %[[HIGH]]
// CHECK: %[[INSIDE:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK: %[[OUTSIDE:.*]] = arith.xori %[[INSIDE]]
// CHECK: exec.fail_if %[[OUTSIDE]], "index out of range in aten.embedding (dim 0 of the table)"
// CHECK: %[[ROW:.*]] = arith.index_cast %[[INDEX]] : i64 to index
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: vector.load %[[W]][%[[ROW]], %{{.*}}] {alignment = 16 : i64} : memref<?x8xbf16>, vector<8xbf16>
// CHECK-NOT: exec.fail_if
// CHECK: vector.store
// CHECK: } else {
// CHECK: scf.for
// CHECK: %[[INDEX:.*]] = memref.load %[[I]]
// CHECK: exec.fail_if
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[W]]
// CHECK-NOT: exec.check_range
// CHECK: return
func.func private @embedding(%w: memref<?x8xbf16>, %i: memref<5xi64>, %y: memref<5x8xbf16>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<?x8xbf16> to tensor<?x8xbf16>
  %1 = bufferization.to_tensor %i restrict : memref<5xi64> to tensor<5xi64>
  %r = aten.embedding %0 at %1 : (tensor<?x8xbf16>, tensor<5xi64>) -> tensor<5x8xbf16>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<5x8xbf16>, memref<5x8xbf16>) -> ()
  return
}

// -----
// Positions of their own for each element: two neighbours read their indices together, and the table one by one.
// CHECK-LABEL: func.func private @gather(
// CHECK-SAME: %[[X:.*]]: memref<6x9xf32>, %[[I:.*]]: memref<6x8xi64>
// CHECK: scf.if
// CHECK: vector.load {{.*}} : memref<48xi64>, vector<2xi64>
// CHECK: exec.fail_if
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[X]]
// CHECK: exec.fail_if
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[X]]
// CHECK: vector.store
// CHECK: return
func.func private @gather(%x: memref<6x9xf32>, %i: memref<6x8xi64>, %y: memref<6x8xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x9xf32> to tensor<6x9xf32>
  %1 = bufferization.to_tensor %i restrict : memref<6x8xi64> to tensor<6x8xi64>
  %r = aten.gather %0 dim 1 at %1 : (tensor<6x9xf32>, tensor<6x8xi64>) -> tensor<6x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<6x8xf32>, memref<6x8xf32>) -> ()
  return
}

// -----
// What a kernel makes of the rows that it reads is computed with them.
// CHECK-LABEL: func.func private @scaled(
// CHECK-COUNT-1: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @scaled(%w: memref<10x64xf32>, %i: memref<3x5xi64>, %s: memref<64xf32>, %y: memref<3x5x64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<10x64xf32> to tensor<10x64xf32>
  %1 = bufferization.to_tensor %i restrict : memref<3x5xi64> to tensor<3x5xi64>
  %2 = bufferization.to_tensor %s restrict : memref<64xf32> to tensor<64xf32>
  %3 = aten.embedding %0 at %1 : (tensor<10x64xf32>, tensor<3x5xi64>) -> tensor<3x5x64xf32>
  %4 = aten.mul %3, %2 : (tensor<3x5x64xf32>, tensor<64xf32>) -> tensor<3x5x64xf32>
  bufferization.materialize_in_destination %4 in restrict writable %y : (tensor<3x5x64xf32>, memref<3x5x64xf32>) -> ()
  return
}

// -----
// A pad reads where the source has an element.
// CHECK-LABEL: func.func private @pad(
// CHECK-SAME: %[[X:.*]]: memref<6x10xf32>, %[[Y:.*]]: memref<6x16xf32>)
// CHECK: gpu.launch
// CHECK: scf.if
// CHECK: scf.if
// CHECK: memref.load %[[X]]
// CHECK: else
// CHECK: vector.store
// CHECK: return
func.func private @pad(%x: memref<6x10xf32>, %y: memref<6x16xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x10xf32> to tensor<6x10xf32>
  %r = aten.constant_pad_nd %0 [2, 4] {value = 1.5} : (tensor<6x10xf32>) -> tensor<6x16xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<6x16xf32>, memref<6x16xf32>) -> ()
  return
}
