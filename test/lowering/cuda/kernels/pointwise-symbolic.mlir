// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// The number of rows, and the distance between those of the input, are known when the kernel runs: positions have 64 bits, the grid is
// computed, and the distance must be a multiple of four elements. A vector along the columns is read as one, in each row again.
// CHECK-LABEL: func.func private @symbolic(
// CHECK-SAME: %[[X:.*]]: memref<?x40xf32, strided<[?, 1]>>, %[[B:.*]]: memref<40xf32>, %[[Y:.*]]: memref<?x40xf32>)
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[ALL:.*]] = arith.muli %[[N]], %{{.*}}
// CHECK: %[[GRID:.*]] = arith.ceildivui %[[ALL]], %{{.*}}
// CHECK: gpu.launch blocks{{.*}} in (%{{.*}} = %[[GRID]],
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[STRIDE:.*]]:2 = memref.extract_strided_metadata %[[X]]
// CHECK: arith.andi %[[STRIDE]]#0, %{{.*}} : index
// CHECK: scf.if
// CHECK: %[[COLUMN:.*]] = arith.remui %{{.*}} : index
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}} : index
// CHECK: arith.muli %[[ROW]], %[[STRIDE]]#0
// CHECK: vector.load
// CHECK: vector.load %[[B]]
// CHECK-COUNT-4: arith.maximumf
// CHECK: vector.store
// CHECK: else
// CHECK: return
func.func private @symbolic(%x: memref<?x40xf32, strided<[?, 1]>>, %b: memref<40xf32>, %y: memref<?x40xf32>)
    attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x40xf32, strided<[?, 1]>> to tensor<?x40xf32>
  %1 = bufferization.to_tensor %b restrict : memref<40xf32> to tensor<40xf32>
  %2 = aten.add %0, %1 : (tensor<?x40xf32>, tensor<40xf32>) -> tensor<?x40xf32>
  %3 = aten.relu %2 : (tensor<?x40xf32>) -> tensor<?x40xf32>
  bufferization.materialize_in_destination %3 in restrict writable %y : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  return
}

// -----
// Dense memory of sizes that are not known is one loop, too: nothing is divided.
// CHECK-LABEL: func.func private @dense_symbolic(
// CHECK: gpu.launch
// CHECK-NOT: arith.divui
// CHECK: vector.load
// CHECK: vector.store
// CHECK-NOT: arith.divui
// CHECK: return
func.func private @dense_symbolic(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x?xf32> to tensor<?x?xf32>
  %1 = aten.relu %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----
// A number that no loop moves in is one element of memory.
// CHECK-LABEL: func.func private @filled(
// CHECK: gpu.launch
// CHECK: memref.load %{{.*}} : memref<1xf32>
func.func private @filled(%x: memref<?x40xf32, strided<[0, 0]>>, %y: memref<?x40xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x40xf32, strided<[0, 0]>> to tensor<?x40xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  return
}
