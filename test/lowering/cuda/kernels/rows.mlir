// RUN: shard-opt %s --aten-to-linalg --linalg-fuse-kernel-ops --cuda-tile-kernels --canonicalize --cse --split-input-file | FileCheck %s

// Six rows of 40: eight threads have a row, each up to two accesses of 16 bytes, and what they have read stays in registers. Lanes
// exchange the largest element and the sum; no memory but the argument is read, and that once.
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME: %[[X:.*]]: memref<6x40xf32>, %[[Y:.*]]: memref<6x40xf32>)
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-NOT: workgroup
// CHECK-COUNT-2: vector.load %[[X]]{{.*}} {alignment = 16 : i64} : memref<6x40xf32>, vector<4xf32>
// CHECK: arith.maximumf
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK-COUNT-8: math.exp
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK-COUNT-1: arith.divf
// CHECK-COUNT-2: vector.store {{.*}}, %[[Y]]{{.*}} {alignment = 16 : i64}
// CHECK-NOT: gpu.barrier
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @softmax(%x: memref<6x40xf32>, %y: memref<6x40xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
  %1 = aten.softmax %0 dim 1 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
  return
}

// -----
// A block to a row, which is in shared memory between the passes: exponentials are computed once, from memory that is read twice.
// CHECK-LABEL: func.func private @in_shared_memory(
// CHECK: gpu.launch
// CHECK-SAME: workgroup(%[[KEPT:.*]] : memref<40000xbf16, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<8xbf16>
// CHECK: memref.store {{.*}}, %[[KEPT]]
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-NOT: vector.load
// CHECK: memref.load %[[KEPT]]
// CHECK: gpu.barrier
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @in_shared_memory(%x: memref<200x40000xbf16>, %y: memref<200xbf16>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<200x40000xbf16> to tensor<200x40000xbf16>
  %1 = aten.var %0 dim [1] {correction = 0.0} : (tensor<200x40000xbf16>) -> tensor<200xbf16>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<200xbf16>, memref<200xbf16>) -> ()
  return
}

// -----
// Too long for that: each of three passes reads memory. Rows do not begin at multiples of 16 bytes: accesses begin before the row.
// CHECK-LABEL: func.func private @in_passes(
// CHECK: gpu.launch
// CHECK: %[[OFFSET:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK: %[[SHIFT:.*]] = arith.remui %[[OFFSET]], %{{.*}} : index
// CHECK: scf.for
// CHECK: arith.subi %{{.*}}, %[[SHIFT]]
// CHECK: vector.load
// CHECK: arith.maximumf
// CHECK: scf.for
// CHECK: vector.load
// CHECK: math.exp
// CHECK: scf.for
// CHECK: vector.load
// CHECK: vector.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @in_passes(%x: memref<200x50257xf32>, %y: memref<200x50257xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<200x50257xf32> to tensor<200x50257xf32>
  %1 = aten.softmax %0 dim 1 : (tensor<200x50257xf32>) -> tensor<200x50257xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<200x50257xf32>, memref<200x50257xf32>) -> ()
  return
}

// -----
// One result: many blocks leave a sum each, and a warp adds these.
// CHECK-LABEL: func.func private @total(
// CHECK-SAME: %[[X:.*]]: memref<1000000xf32>, %[[Y:.*]]: memref<f32>)
// CHECK: %[[PARTS:.*]] = memref.alloc() : memref<1x[[PARTS_N:[0-9]+]]xf32>
// CHECK: gpu.launch
// CHECK: vector.load %[[X]]
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %[[PARTS]]
// CHECK: gpu.launch
// CHECK: memref.load %[[PARTS]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: memref.store {{.*}}, %[[Y]][]
// CHECK-NOT: atomic
// CHECK: return
func.func private @total(%x: memref<1000000xf32>, %y: memref<f32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1000000xf32> to tensor<1000000xf32>
  %1 = aten.sum %0 dim [0] : (tensor<1000000xf32>) -> tensor<f32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<f32>, memref<f32>) -> ()
  return
}

// -----
// Columns: threads side by side have columns side by side, and add what others of their column have found, by shared memory.
// CHECK-LABEL: func.func private @columns(
// CHECK-SAME: %[[X:.*]]: memref<300x70xf32>
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>)
// CHECK: memref.load %[[X]]
// CHECK: memref.store {{.*}}, %[[SHARED]]
// CHECK: gpu.barrier
// CHECK-COUNT-32: memref.load %[[SHARED]]
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @columns(%x: memref<300x70xf32>, %y: memref<70xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<300x70xf32> to tensor<300x70xf32>
  %1 = aten.sum %0 dim [0] : (tensor<300x70xf32>) -> tensor<70xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<70xf32>, memref<70xf32>) -> ()
  return
}

// -----
// The first of equal elements is the answer, whichever threads have them: lanes compare positions.
// CHECK-LABEL: func.func private @first_largest(
// CHECK: gpu.launch
// CHECK: gpu.shuffle xor %{{.*}} : f32
// CHECK-COUNT-2: gpu.shuffle xor %{{.*}} : i32
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK: return
func.func private @first_largest(%x: memref<8x100xf32>, %y: memref<8xi64>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<8x100xf32> to tensor<8x100xf32>
  %1 = aten.argmax %0 dim 1 : (tensor<8x100xf32>) -> tensor<8xi64>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<8xi64>, memref<8xi64>) -> ()
  return
}

// -----
// A scan along the row: lanes get the sum of those before them, and each runs over its elements again, from there.
// CHECK-LABEL: func.func private @scan(
// CHECK: gpu.launch
// CHECK: scf.for
// CHECK: gpu.shuffle up
// CHECK: gpu.shuffle idx
// CHECK: arith.addf
// CHECK: vector.store
// CHECK: return
func.func private @scan(%x: memref<64x96xf32>, %y: memref<64x96xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64x96xf32> to tensor<64x96xf32>
  %1 = aten.cumsum %0 dim 1 : (tensor<64x96xf32>) -> tensor<64x96xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<64x96xf32>, memref<64x96xf32>) -> ()
  return
}

// -----
// Sizes that are known when the kernel runs. Few rows are shared by as many blocks as their length is worth.
// CHECK-LABEL: func.func private @dynamic(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32>
// CHECK-DAG: %[[ROWS:.*]] = memref.dim %[[X]], %c0
// CHECK-DAG: %[[LENGTH:.*]] = memref.dim %[[X]], %c1
// CHECK: gpu.launch {{.*}} in (%{{[a-z0-9]*}} = %[[ROWS]],
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: return
func.func private @dynamic(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x?xf32> to tensor<?x?xf32>
  %1 = aten.sum %0 dim [1] : (tensor<?x?xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----
// Two reductions of different dims are launches of their own; what both need has memory.
// CHECK-LABEL: func.func private @rows_then_columns(
// CHECK-COUNT-2: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @rows_then_columns(%x: memref<64x48xf32>, %y: memref<64x48xf32>, %z: memref<48xf32>) attributes {exec.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64x48xf32> to tensor<64x48xf32>
  %1 = aten.softmax %0 dim 1 : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %2 = aten.sum %1 dim [0] : (tensor<64x48xf32>) -> tensor<48xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<64x48xf32>, memref<64x48xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %z : (tensor<48xf32>, memref<48xf32>) -> ()
  return
}
