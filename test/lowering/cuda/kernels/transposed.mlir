// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// A square of 32 x 32 elements is read along the rows of the input and written along those of the result; rows in shared memory are one
// element longer, so that the threads of a warp read different banks. 60 x 40 elements are four squares.
// CHECK-LABEL: func.func private @transpose(
// CHECK-DAG: %[[THIRTYTWO:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: gpu.launch blocks{{.*}} in (%{{.*}} = %[[FOUR]], {{.*}} threads(%[[TX:[a-z0-9]*]], %[[TY:[a-z0-9]*]], %{{.*}}) in (%{{.*}} = %[[THIRTYTWO]], %{{.*}} = %[[EIGHT]],
// CHECK-SAME: workgroup(%[[SQUARE:.*]] : memref<32x33xf32, #gpu.address_space<workgroup>>)
// CHECK: scf.if
// CHECK: %[[IN:.*]] = memref.load
// CHECK: memref.store %[[IN]], %[[SQUARE]][%[[TY]], %[[TX]]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: %[[OUT:.*]] = memref.load %[[SQUARE]][%[[TX]], %[[TY]]]
// CHECK: memref.store %[[OUT]]
// CHECK: return
func.func private @transpose(%x: memref<60x40xf32, strided<[1, 60]>>, %y: memref<60x40xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<60x40xf32, strided<[1, 60]>> to tensor<60x40xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<60x40xf32>, memref<60x40xf32>) -> ()
  return
}

// -----
// The outer dims of heads that change places have blocks of their own. The second operand is read where it is, as it has the
// result's order.
// CHECK-LABEL: func.func private @heads(
// CHECK-SAME: %[[X:.*]]: memref<{{.*}}>, %[[Z:[a-z0-9]*]]: memref<2x16x32x64xf32>
// CHECK: gpu.launch
// CHECK-SAME: workgroup(%{{.*}} : memref<32x33xf32, #gpu.address_space<workgroup>>)
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: return
func.func private @heads(%x: memref<2x16x32x64xf32, strided<[32768, 2048, 1, 32]>>, %z: memref<2x16x32x64xf32>, %y: memref<2x16x32x64xf32>)
    attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<2x16x32x64xf32, strided<[32768, 2048, 1, 32]>> to tensor<2x16x32x64xf32>
  %1 = bufferization.to_tensor %z restrict : memref<2x16x32x64xf32> to tensor<2x16x32x64xf32>
  %2 = aten.add %0, %1 : (tensor<2x16x32x64xf32>, tensor<2x16x32x64xf32>) -> tensor<2x16x32x64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<2x16x32x64xf32>, memref<2x16x32x64xf32>) -> ()
  return
}

// -----
// Heads that change places with positions keep their rows: these are read and written as vectors.
// CHECK-LABEL: func.func private @rows_move(
// CHECK-NOT: workgroup
// CHECK: vector.load
// CHECK: vector.store
// CHECK: return
func.func private @rows_move(%x: memref<2x16x32x64xf32, strided<[32768, 64, 1024, 1]>>, %y: memref<2x16x32x64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<2x16x32x64xf32, strided<[32768, 64, 1024, 1]>> to tensor<2x16x32x64xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<2x16x32x64xf32>, memref<2x16x32x64xf32>) -> ()
  return
}

// -----
// The result's memory has its neighbours along the first dim: loops follow it.
// CHECK-LABEL: func.func private @transposed_result(
// CHECK: workgroup
// CHECK: return
func.func private @transposed_result(%x: memref<60x40xf32>, %y: memref<60x40xf32, strided<[1, 60]>>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<60x40xf32> to tensor<60x40xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<60x40xf32>, memref<60x40xf32, strided<[1, 60]>>) -> ()
  return
}

// -----
// Four columns are too few for squares.
// CHECK-LABEL: func.func private @narrow(
// CHECK-NOT: workgroup
// CHECK: return
func.func private @narrow(%x: memref<60x4xf32, strided<[1, 60]>>, %y: memref<60x4xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<60x4xf32, strided<[1, 60]>> to tensor<60x4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<60x4xf32>, memref<60x4xf32>) -> ()
  return
}
