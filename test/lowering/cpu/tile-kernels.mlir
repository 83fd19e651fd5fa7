// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cpu-tile-kernels --split-input-file | FileCheck %s

// A row at a time: what a row needs in between has buffers of one row, and the result is computed in its place.
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME: %[[X:.*]]: memref<6x80xf32>, %[[Y:.*]]: memref<6x80xf32>)
// CHECK: %[[ROWS:.*]] = arith.constant 6 : index
// CHECK: exec.parallel %[[I:.*]] to %[[ROWS]] grain
// CHECK: %[[MAX:.*]] = memref.alloc() : memref<1x1xf32>
// CHECK: %[[ROW:.*]] = memref.subview %[[X]][%[[I]], 0] [1, 80] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[ROW]] : {{.*}}) outs(%[[MAX]] :
// CHECK: arith.maximumf
// CHECK: %[[EXP:.*]] = memref.alloc() : memref<1x80xf32>
// CHECK: math.exp
// CHECK: %[[SUM:.*]] = memref.alloc() : memref<1x1xf32>
// CHECK: arith.addf
// CHECK: %[[OUT:.*]] = memref.subview %[[Y]][%[[I]], 0] [1, 80] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[EXP]], %[[SUM]] : {{.*}}) outs(%[[OUT]] :
// CHECK-NOT: tensor
func.func private @softmax(%x: memref<6x80xf32>, %y: memref<6x80xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x80xf32> to tensor<6x80xf32>
  %1 = aten.softmax %0 dim 1 : (tensor<6x80xf32>) -> tensor<6x80xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<6x80xf32>, memref<6x80xf32>) -> ()
  return
}

// -----

// Rows of few elements are one tile together, as many as fit.
// CHECK-LABEL: func.func private @short_rows(
// CHECK: %[[TILES:.*]] = arith.constant 500 : index
// CHECK: exec.parallel %[[I:.*]] to %[[TILES]] grain
// CHECK: %[[SUM:.*]] = memref.subview %{{.*}}[%[[I]], 0] [1, 100] [1, 1]
func.func private @short_rows(%x: memref<500x100x8xf32>, %y: memref<500x100xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<500x100x8xf32> to tensor<500x100x8xf32>
  %1 = aten.sum %0 dim [2] : (tensor<500x100x8xf32>) -> tensor<500x100xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<500x100xf32>, memref<500x100xf32>) -> ()
  return
}

// -----
// The number of rows is known when the kernel runs; the last tile may have fewer than the others. One loop nest for both
// ops, no buffer, and the vector along the columns is read as a whole.
// CHECK-LABEL: func.func private @symbolic(
// CHECK-SAME: %[[X:.*]]: memref<?x40xf32, strided<[?, 1]>>, %[[B:.*]]: memref<40xf32>, %[[Y:.*]]: memref<?x40xf32>)
// CHECK-NOT: memref.alloc
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[TILES:.*]] = arith.ceildivui %[[N]], %{{.*}}
// CHECK: exec.parallel %[[I:.*]] to %[[TILES]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %[[STEP:.*]] :
// CHECK: %[[REST:.*]] = arith.subi %[[N]], %[[FIRST]]
// CHECK: %[[COUNT:.*]] = arith.minsi %[[REST]], %[[STEP]]
// CHECK: %[[IN:.*]] = memref.subview %[[X]][%[[FIRST]], 0] [%[[COUNT]], 40] [1, 1]
// CHECK: %[[OUT:.*]] = memref.subview %[[Y]][%[[FIRST]], 0] [%[[COUNT]], 40] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[IN]], %[[B]] : {{.*}}) outs(%[[OUT]] :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: linalg.yield
// CHECK-NOT: linalg.generic
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
// A sum over everything has no dim to divide: it is one tile.
// CHECK-LABEL: func.func private @total(
// CHECK-NOT: exec.parallel
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "reduction"]{{.*}} ins(%arg0 :{{.*}}) outs(%arg1 :
// CHECK: return
func.func private @total(%x: memref<6x40xf32>, %y: memref<f32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
  %1 = aten.sum %0 dim [0, 1] : (tensor<6x40xf32>) -> tensor<f32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<f32>, memref<f32>) -> ()
  return
}

// -----
// A kernel that has two results, one computed from the other: both are in their places, and neither is computed twice.
// CHECK-LABEL: func.func private @two_results(
// CHECK-NOT: memref.alloc
// CHECK-COUNT-1: math.exp
// CHECK-COUNT-1: math.tanh
// CHECK-NOT: math.
// CHECK: return
func.func private @two_results(%x: memref<6x40xf32>, %y: memref<6x40xf32>, %z: memref<6x40xf32>)
    attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
  %1 = aten.exp %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %2 = aten.tanh %1 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
  return
}

// -----
// Functions that are no kernels are left alone.
// CHECK-LABEL: func.func @entry(
// CHECK: bufferization.to_tensor
// CHECK: bufferization.materialize_in_destination
func.func @entry(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
