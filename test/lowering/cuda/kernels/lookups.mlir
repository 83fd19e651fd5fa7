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

// -----
// Rows that may have no columns: then nothing is read, and a launch checks the positions. Else it has no blocks.
// CHECK-LABEL: func.func private @maybe_empty(
// CHECK-SAME: %[[W:.*]]: memref<9x?xf32>, %[[I:.*]]: memref<300xi64>, %[[Y:.*]]: memref<300x?xf32>)
// CHECK-DAG: %[[COLUMNS:.*]] = memref.dim %[[W]]
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[COLUMNS]], %c0
// CHECK: %[[BLOCKS:.*]] = arith.select %[[NONE]], %c2, %c0
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], %{{.*}} = %c1
// CHECK: memref.load %[[I]]
// CHECK: exec.fail_if %{{.*}}, "index out of range in aten.embedding (dim 0 of the table, of size 9)"
// CHECK: gpu.launch
// CHECK: exec.fail_if
// CHECK: return
func.func private @maybe_empty(%w: memref<9x?xf32>, %i: memref<300xi64>, %y: memref<300x?xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<9x?xf32> to tensor<9x?xf32>
  %1 = bufferization.to_tensor %i restrict : memref<300xi64> to tensor<300xi64>
  %r = aten.embedding %0 at %1 : (tensor<9x?xf32>, tensor<300xi64>) -> tensor<300x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<300x?xf32>, memref<300x?xf32>) -> ()
  return
}

// -----
// A result that nobody has memory for, since it has no elements.
// CHECK-LABEL: func.func private @empty(
// CHECK-SAME: %[[W:.*]]: memref<9x0xf32>, %[[I:.*]]: memref<300xi64>
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c2
// CHECK: memref.load %[[I]]
// CHECK: exec.fail_if
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @empty(%w: memref<9x0xf32>, %i: memref<300xi64>, %y: memref<300x0xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<9x0xf32> to tensor<9x0xf32>
  %1 = bufferization.to_tensor %i restrict : memref<300xi64> to tensor<300xi64>
  %r = aten.embedding %0 at %1 : (tensor<9x0xf32>, tensor<300xi64>) -> tensor<300x0xf32>
  return
}

// -----
// Rows that two ops read, which have no elements where there are no columns: then nothing is looked up, though the rows themselves
// have an element. The launch for the check has blocks exactly where the columns are 0.
// CHECK-LABEL: func.func private @two_readers(
// CHECK-SAME: %{{.*}}: memref<9x1xf32>, %[[I:.*]]: memref<300xi64>, %[[S:.*]]: memref<1x?xf32>
// CHECK: %[[COLUMNS:.*]] = memref.dim %[[S]], %c1
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[COLUMNS]], %c0
// CHECK: %[[BLOCKS:.*]] = arith.select %[[NONE]], %c2, %c0
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]], %{{.*}} = %c1
// CHECK: memref.load %[[I]]
// CHECK: exec.fail_if %{{.*}}, "index out of range in aten.embedding (dim 0 of the table, of size 9)"
// CHECK: gpu.launch
// CHECK: return
func.func private @two_readers(%w: memref<9x1xf32>, %i: memref<300xi64>, %s: memref<1x?xf32>, %y: memref<300x?xf32>, %z: memref<300x?xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<9x1xf32> to tensor<9x1xf32>
  %1 = bufferization.to_tensor %i restrict : memref<300xi64> to tensor<300xi64>
  %2 = bufferization.to_tensor %s restrict : memref<1x?xf32> to tensor<1x?xf32>
  %r = aten.embedding %0 at %1 : (tensor<9x1xf32>, tensor<300xi64>) -> tensor<300x1xf32>
  %m = aten.mul %r, %2 : (tensor<300x1xf32>, tensor<1x?xf32>) -> tensor<300x?xf32>
  %n = aten.add %r, %2 : (tensor<300x1xf32>, tensor<1x?xf32>) -> tensor<300x?xf32>
  bufferization.materialize_in_destination %m in restrict writable %y : (tensor<300x?xf32>, memref<300x?xf32>) -> ()
  bufferization.materialize_in_destination %n in restrict writable %z : (tensor<300x?xf32>, memref<300x?xf32>) -> ()
  return
}

// -----
// The same where it is known that there are none.
// CHECK-LABEL: func.func private @two_empty_readers(
// CHECK-SAME: %{{.*}}: memref<9x1xf32>, %[[I:.*]]: memref<300xi64>
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c2
// CHECK: memref.load %[[I]]
// CHECK: exec.fail_if
// CHECK: return
func.func private @two_empty_readers(%w: memref<9x1xf32>, %i: memref<300xi64>, %s: memref<1x0xf32>, %y: memref<300x0xf32>, %z: memref<300x0xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<9x1xf32> to tensor<9x1xf32>
  %1 = bufferization.to_tensor %i restrict : memref<300xi64> to tensor<300xi64>
  %2 = bufferization.to_tensor %s restrict : memref<1x0xf32> to tensor<1x0xf32>
  %r = aten.embedding %0 at %1 : (tensor<9x1xf32>, tensor<300xi64>) -> tensor<300x1xf32>
  %m = aten.mul %r, %2 : (tensor<300x1xf32>, tensor<1x0xf32>) -> tensor<300x0xf32>
  %n = aten.add %r, %2 : (tensor<300x1xf32>, tensor<1x0xf32>) -> tensor<300x0xf32>
  bufferization.materialize_in_destination %m in restrict writable %y : (tensor<300x0xf32>, memref<300x0xf32>) -> ()
  bufferization.materialize_in_destination %n in restrict writable %z : (tensor<300x0xf32>, memref<300x0xf32>) -> ()
  return
}

// -----
// One of two readers reads all rows in any case: no launch for the check.
// CHECK-LABEL: func.func private @one_reads_all(
// CHECK-NOT: arith.select
// CHECK: gpu.launch
// CHECK: return
func.func private @one_reads_all(%w: memref<9x1xf32>, %i: memref<300xi64>, %s: memref<1x?xf32>, %y: memref<300x?xf32>, %z: memref<300x1xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %w restrict : memref<9x1xf32> to tensor<9x1xf32>
  %1 = bufferization.to_tensor %i restrict : memref<300xi64> to tensor<300xi64>
  %2 = bufferization.to_tensor %s restrict : memref<1x?xf32> to tensor<1x?xf32>
  %r = aten.embedding %0 at %1 : (tensor<9x1xf32>, tensor<300xi64>) -> tensor<300x1xf32>
  %m = aten.mul %r, %2 : (tensor<300x1xf32>, tensor<1x?xf32>) -> tensor<300x?xf32>
  %n = aten.relu %r : (tensor<300x1xf32>) -> tensor<300x1xf32>
  bufferization.materialize_in_destination %m in restrict writable %y : (tensor<300x?xf32>, memref<300x?xf32>) -> ()
  bufferization.materialize_in_destination %n in restrict writable %z : (tensor<300x1xf32>, memref<300x1xf32>) -> ()
  return
}
