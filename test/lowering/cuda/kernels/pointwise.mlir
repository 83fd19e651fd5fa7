// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// Dense memory is one loop, whatever its rank: 240 elements, four for each thread, in accesses of 16 bytes. Each value is computed once
// for both results. The test of the addresses is the same in all threads; where it fails, a thread takes elements that are a block apart.
// CHECK-LABEL: func.func private @two_results(
// CHECK-SAME: %[[X:.*]]: memref<6x40xf32>, %[[Y:.*]]: memref<6x40xf32>, %[[Z:.*]]: memref<6x40xf32>)
// CHECK-DAG: %[[BLOCK:.*]] = arith.constant 256 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 15 : index
// CHECK-DAG: %[[ALL:.*]] = arith.constant 240 : i32
// CHECK: gpu.launch blocks
// CHECK-SAME: threads(%[[T:[a-z0-9]*]],
// CHECK: %[[ID:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[ID]], %{{.*}} : i32
// CHECK-COUNT-3: memref.extract_aligned_pointer_as_index
// CHECK: arith.cmpi ule, %{{.*}}, %[[ALL]]
// CHECK: scf.if
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<240xf32>, vector<4xf32>
// CHECK-COUNT-4: math.tanh
// CHECK-NOT: math.
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 16 : i64} : memref<240xf32>, vector<4xf32>
// CHECK: } else {
// CHECK: %[[STEP:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BLOCK]] : i32
// CHECK: scf.for {{.*}} step %[[STEP]]
// CHECK: memref.load
// CHECK-COUNT-1: math.exp
// CHECK-COUNT-1: math.tanh
// CHECK-COUNT-2: memref.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @two_results(%x: memref<6x40xf32>, %y: memref<6x40xf32>, %z: memref<6x40xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
  %1 = aten.exp %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %2 = aten.tanh %1 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
  return
}

// -----
// Eight elements: one access of the 16-bit floats, and two of the others. Sums of 16-bit floats are in f32 and rounded.
// CHECK-LABEL: func.func private @mixed(
// CHECK: scf.if
// CHECK-DAG: vector.load {{.*}} {alignment = 16 : i64} : memref<512xbf16>, vector<8xbf16>
// CHECK-DAG: vector.load {{.*}} {alignment = 16 : i64} : memref<512xf32>, vector<4xf32>
// CHECK-DAG: vector.load {{.*}} {alignment = 16 : i64} : memref<512xf32>, vector<4xf32>
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.addf
// CHECK: vector.store {{.*}} : memref<512xf32>, vector<4xf32>
// CHECK: vector.store {{.*}} : memref<512xf32>, vector<4xf32>
// CHECK: else
// CHECK: return
func.func private @mixed(%x: memref<8x64xbf16>, %w: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<8x64xbf16> to tensor<8x64xbf16>
  %1 = bufferization.to_tensor %w restrict : memref<8x64xf32> to tensor<8x64xf32>
  %2 = aten.add %0, %1 : (tensor<8x64xbf16>, tensor<8x64xf32>) -> tensor<8x64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
  return
}

// -----
// Rows of 42 elements, at distances of 63: two neighbours begin at even positions of the row, but not of the memory. So the memory is
// read element by element, and the result, which is dense, is written in pairs.
// CHECK-LABEL: func.func private @odd_rows(
// CHECK: scf.if
// CHECK: memref.load
// CHECK: memref.load
// CHECK: vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK: else
// CHECK: return
func.func private @odd_rows(%x: memref<8x42xf32, strided<[63, 1]>>, %y: memref<8x42xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<8x42xf32, strided<[63, 1]>> to tensor<8x42xf32>
  %1 = aten.neg %0 : (tensor<8x42xf32>) -> tensor<8x42xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8x42xf32>, memref<8x42xf32>) -> ()
  return
}

// -----
// Results of other sizes have launches of their own, in which what they need is computed again.
// CHECK-LABEL: func.func private @two_domains(
// CHECK-COUNT-2: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @two_domains(%x: memref<64xf32>, %v: memref<8x64xf32>, %y: memref<64xf32>, %z: memref<8x64xf32>)
    attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64xf32> to tensor<64xf32>
  %1 = bufferization.to_tensor %v restrict : memref<8x64xf32> to tensor<8x64xf32>
  %2 = aten.exp %0 : (tensor<64xf32>) -> tensor<64xf32>
  %3 = aten.mul %1, %2 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  bufferization.materialize_in_destination %3 in restrict writable %z : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
  return
}

// -----
// One vector along both dims of a matrix: neighbours of the column are read together, the row's element is one for all.
// CHECK-LABEL: func.func private @outer(
// CHECK-SAME: %[[X:.*]]: memref<64xf32>
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = memref.load %[[X]][
// CHECK: vector.load %[[X]][
// CHECK-COUNT-4: arith.mulf %[[ROW]], %
// CHECK: vector.store
// CHECK: else
// CHECK: return
func.func private @outer(%x: memref<64xf32>, %y: memref<64x64xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64xf32> to tensor<64xf32>
  %1 = aten.unsqueeze %0 dim 1 : (tensor<64xf32>) -> tensor<64x1xf32>
  %2 = aten.mul %1, %0 : (tensor<64x1xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}

// -----
// A 0-dim tensor has one element.
// CHECK-LABEL: func.func private @scalar(
// CHECK: gpu.launch
// CHECK: memref.load
// CHECK: math.exp
// CHECK: memref.store
// CHECK: return
func.func private @scalar(%x: memref<f32>, %y: memref<f32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<f32> to tensor<f32>
  %1 = aten.exp %0 : (tensor<f32>) -> tensor<f32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<f32>, memref<f32>) -> ()
  return
}

// -----
// No elements: nothing is launched.
// CHECK-LABEL: func.func private @empty(
// CHECK-NEXT: return
func.func private @empty(%x: memref<0x4xf32>, %y: memref<0x4xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<0x4xf32> to tensor<0x4xf32>
  %1 = aten.exp %0 : (tensor<0x4xf32>) -> tensor<0x4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<0x4xf32>, memref<0x4xf32>) -> ()
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
