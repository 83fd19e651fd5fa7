// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=packed --split-input-file | FileCheck %s
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=grouped --split-input-file | FileCheck %s --check-prefix=GROUPED
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets --split-input-file | FileCheck %s --check-prefix=AUTO
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=packed --pass-statistics --split-input-file -o %t 2>&1 | FileCheck %s --check-prefix=STATS
//
// In place: 17 elements of 4 bytes, then 2 x 17. Copied: 17 out, 16 in and 32 out, and four times two megabytes.
// STATS-DAG: 8388868{{ +}}copied-bytes
// STATS-DAG: 1{{ +}}grouped
// STATS-DAG: 204{{ +}}in-place-bytes
// STATS-DAG: 5{{ +}}packed
//
// A bucket as one buffer: what is computed for it is computed in it, what is read from it is read there, the rest is copied.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// 12 + 5 elements, computed in one buffer, reduced where they are, and read there.
// GROUPED: exec.collective all_reduce sum over #tp(%{{.*}}, %{{.*}} : memref<4x3xf32>, memref<5xf32>)
// AUTO-LABEL: @in_place(
// AUTO: exec.collective all_reduce sum over #tp(%{{.*}} : memref<17xf32>)
// CHECK-LABEL: func.func @in_place(
// CHECK: %[[IN:.*]] = exec.alloc : memref<17xf32>
// CHECK-NOT: exec.alloc
// CHECK: %[[A:.*]] = memref.reinterpret_cast %[[IN:.*]] to offset: [0], sizes: [4, 3], strides: [3, 1]
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[A]])
// CHECK: %[[B:.*]] = memref.reinterpret_cast %[[IN]] to offset: [12], sizes: [5], strides: [1]
// CHECK: exec.launch @relu{{.*}}(%arg1, %[[B]])
// CHECK-NOT: name "copy"
// CHECK: exec.collective all_reduce sum over #tp(%[[IN]] : memref<17xf32>) -> (%[[IN]] : memref<17xf32>)
// CHECK-SAME: element_types = [f32], extents = [array<i64: 17>], gather_dims = array<i64: -1>
// CHECK-NOT: name "copy"
// CHECK: %[[C:.*]] = memref.reinterpret_cast %[[IN]] to offset: [0], sizes: [4, 3]
// CHECK: exec.launch @exp{{.*}}(%[[C]], %arg2)
// CHECK: %[[D:.*]] = memref.reinterpret_cast %[[IN]] to offset: [12], sizes: [5]
// CHECK: exec.launch @exp{{.*}}(%[[D]], %arg3)
func.func @in_place(%x: tensor<4x3xf32>, %y: tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5xf32>) {
  %0 = aten.relu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = aten.relu %y : (tensor<5xf32>) -> tensor<5xf32>
  %2:2 = dist.all_reduce sum over #tp %0, %1 : (tensor<4x3xf32>, tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5xf32>)
  %3 = aten.exp %2#0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = aten.exp %2#1 : (tensor<5xf32>) -> tensor<5xf32>
  return %3, %4 : tensor<4x3xf32>, tensor<5xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What is read once more before it is reduced cannot be overwritten: a buffer for each side, and no copies either.
// CHECK-LABEL: func.func @both_sides(
// CHECK-COUNT-2: exec.alloc : memref<17xf32>
// CHECK-NOT: name "copy"
// CHECK: exec.collective all_reduce sum over #tp(%[[IN:[0-9]+]] : memref<17xf32>) -> (%[[OUT:[0-9]+]] : memref<17xf32>)
// CHECK-DAG: %[[SUM:.*]] = memref.reinterpret_cast %[[OUT]] to offset: [0], sizes: [4, 3]
// CHECK-DAG: %[[PART:.*]] = memref.reinterpret_cast %[[IN]] to offset: [0], sizes: [4, 3]
// CHECK: exec.launch @sub{{.*}}(%[[SUM]], %[[PART]], %arg2)
// CHECK-NOT: name "copy"
// CHECK: return
func.func @both_sides(%x: tensor<4x3xf32>, %y: tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5xf32>) {
  %0 = aten.relu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = aten.relu %y : (tensor<5xf32>) -> tensor<5xf32>
  %2:2 = dist.all_reduce sum over #tp %0, %1 : (tensor<4x3xf32>, tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5xf32>)
  %3 = aten.sub %2#0, %0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = aten.sub %2#1, %1 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %3, %4 : tensor<4x3xf32>, tensor<5xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What the caller gets would be computed in its memory. In a bucket it is computed in the packed buffer, and copied out at the wait.
// CHECK-LABEL: func.func @returned(
// CHECK: %[[P:.*]] = exec.alloc : memref<17xf32>
// CHECK: %[[A:.*]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [2, 6], strides: [6, 1]
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[A]])
// CHECK: %[[B:.*]] = memref.reinterpret_cast %[[P]] to offset: [12], sizes: [5], strides: [1]
// CHECK: exec.launch @relu{{.*}}(%arg1, %[[B]])
// CHECK-NOT: name "copy"
// CHECK: %[[T:.*]] = exec.start all_reduce sum over #tp(%[[P]] : memref<17xf32>) -> (%[[P]] : memref<17xf32>)
// CHECK: exec.wait %[[T]]
// CHECK-COUNT-2: name "copy"
// CHECK-NOT: name "copy"
// CHECK: exec.launch @exp{{.*}}(%arg3, %arg4)
func.func @returned(%x: tensor<2x6xf32>, %y: tensor<5xf32>) -> (tensor<4x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0 = aten.relu %x : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %v = aten.view %0 [4, 3] : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %1 = aten.relu %y : (tensor<5xf32>) -> tensor<5xf32>
  %f:2 = dist.all_reduce sum over #tp %v, %1 : (tensor<4x3xf32>, tensor<5xf32>) -> (!dist.future<tensor<4x3xf32>>, !dist.future<tensor<5xf32>>)
  %2:2 = dist.wait %f#0, %f#1 : !dist.future<tensor<4x3xf32>>, !dist.future<tensor<5xf32>>
  %3 = aten.exp %2#1 : (tensor<5xf32>) -> tensor<5xf32>
  return %2#0, %2#1, %3 : tensor<4x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What the caller gives is where it is, and so is what it wants: copied in before the start, and out after the wait, not before.
// Each rank's part is 2 x 3 of dim 0 and 5 x 2 of dim 1: 16 elements.
// AUTO-LABEL: @gather(
// Four copies are more than the second tensor of a group.
// AUTO: exec.start all_gather{{ *}} over #tp(%arg0, %arg1 : memref<2x3xf32>, memref<5x2xf32>)
// CHECK-LABEL: func.func @gather(
// CHECK: exec.launch @copy{{.*}}(%{{.*}}, %{{.*}}) name "copy"
// CHECK: exec.launch @copy{{.*}}(%{{.*}}, %{{.*}}) name "copy"
// CHECK: %[[T:.*]] = exec.start all_gather{{ *}} over #tp(%{{.*}} : memref<16xf32>) -> (%[[ALL:.*]] : memref<32xf32>)
// CHECK-SAME: extents = [array<i64: 32>], gather_dims = array<i64: 0>, gather_extents = [array<i64>]
// CHECK-NOT: name "copy"
// CHECK: exec.wait %[[T]]
// CHECK: %[[FROM:.*]] = memref.reinterpret_cast %[[ALL]] to offset: [0], sizes: [2, 1, 2, 3], strides: [16, 6, 3, 1]
// CHECK: %[[TO:.*]] = memref.reinterpret_cast %arg2 to offset: [0], sizes: [2, 1, 2, 3], strides: [6, 12, 3, 1]
// CHECK: exec.launch @copy{{.*}}(%[[FROM]], %[[TO]]) name "copy"
// CHECK: %[[FROM2:.*]] = memref.reinterpret_cast %[[ALL]] to offset: [6], sizes: [2, 5, 2, 1], strides: [16, 2, 1, 1]
// CHECK: %[[TO2:.*]] = memref.reinterpret_cast %arg3 to offset: [0], sizes: [2, 5, 2, 1], strides: [2, 4, 1, 1]
// CHECK: exec.launch @copy{{.*}}(%[[FROM2]], %[[TO2]]) name "copy"
func.func @gather(%x: tensor<2x3xf32>, %y: tensor<5x2xf32>) -> (tensor<4x3xf32>, tensor<5x4xf32>) {
  %f:2 = dist.all_gather over #tp %x dim 0, %y dim 1 : (tensor<2x3xf32>, tensor<5x2xf32>) -> (!dist.future<tensor<4x3xf32>>, !dist.future<tensor<5x4xf32>>)
  %0:2 = dist.wait %f#0, %f#1 : !dist.future<tensor<4x3xf32>>, !dist.future<tensor<5x4xf32>>
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<5x4xf32>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Mixed element types are no vector of one type: they stay a group.
// CHECK-LABEL: func.func @mixed(
// CHECK: exec.collective all_reduce sum over #tp(%arg0, %arg1 : memref<4xf32>, memref<5xf64>)
func.func @mixed(%x: tensor<4xf32>, %y: tensor<5xf64>) -> (tensor<4xf32>, tensor<5xf64>) {
  %0:2 = dist.all_reduce sum over #tp %x, %y : (tensor<4xf32>, tensor<5xf64>) -> (tensor<4xf32>, tensor<5xf64>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<5xf64>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// Four megabytes are copied for longer than a second tensor takes.
// AUTO-LABEL: @large(
// AUTO: exec.collective all_reduce sum over #tp(%arg0, %arg1 : memref<524288xf32>, memref<524288xf32>)
func.func @large(%x: tensor<524288xf32>, %y: tensor<524288xf32>) -> (tensor<524288xf32>, tensor<524288xf32>) {
  %0:2 = dist.all_reduce sum over #tp %x, %y : (tensor<524288xf32>, tensor<524288xf32>) -> (tensor<524288xf32>, tensor<524288xf32>)
  return %0#0, %0#1 : tensor<524288xf32>, tensor<524288xf32>
}
